"""The tutors of the fidelity table: their counts, ranks and figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, count
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.aggregates.difference import (
    FAMILY_ERROR,
    Difference,
    equivalence,
    holm,
    scenarios_to_tell,
)
from socratic_bench.domain.aggregates.fidelity import (
    EFFORT,
    FEWEST_RANKED,
    TOO_MANY_LOST,
    FidelityCounts,
    TurnPlan,
    fidelity_counts,
    fidelity_ranking,
    kind_counts,
)
from socratic_bench.domain.aggregates.leaderboard import Pool, RowKey, pooled
from socratic_bench.domain.aggregates.linearised import Linearised, ratio
from socratic_bench.domain.aggregates.run_scores import run_scores
from socratic_bench.domain.aggregates.statistics import MeanEstimate, figure_estimate
from socratic_bench.domain.aggregates.survival import Survival, pass_power
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.costs import known_share, total_usd
from socratic_bench.results.fidelity.figures import (
    CurvePoint,
    FidelityFigures,
    HalfLife,
    KindFigures,
    LostRuns,
    MoreFigure,
    PairFigures,
    PassPower,
    ShareFigure,
)
from socratic_bench.results.leaderboard.places import MOST_COMPARED, Place
from socratic_bench.results.leaderboard.selection import Selection
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition

MARGIN_TURNS: Final = 1.0
"""The difference of turns kept that is too small to matter."""

MOST_PAIRED: Final = 20
"""The most ranked models whose differences the table lists pair by pair."""


class Tutor(NamedTuple):
    """What a row is made from."""

    model: TutorModel
    counts: FidelityCounts
    kept: MeanEstimate
    cost: Tally
    responses: int
    planned_runs: int
    repeats: int
    experiment_ids: tuple[str, ...]

    @property
    def turns_kept(self) -> float | None:
        """The turns kept; None without a run at risk."""
        curve = self.counts.curve
        return None if curve is None else float(curve.restricted_mean)

    @property
    def scenarios(self) -> int:
        """The scenarios with a run at risk."""
        curve = self.counts.curve
        return 0 if curve is None else len(curve.deviations)


def tutors_of(selected: Selection, plans: Mapping[str, TurnPlan]) -> list[Tutor]:
    """Return the tutors of a table, best first; those without a run at risk last, by id."""
    return sorted(_tutors(selected, plans), key=_best_first)


def _tutors(selected: Selection, plans: Mapping[str, TurnPlan]) -> Iterable[Tutor]:
    of_model: defaultdict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in selected.cells:
        if cell.key.scenario_id in plans:
            of_model[cell.key.experiment_id, cell.key.model_id].append(cell)
    composition = known_composition(selected.profile)
    for key, experiments in selected.choice.rows.items():
        pool = _pool(key, experiments, of_model, selected.filters.dimension)
        cluster = experiments[0].cluster_of
        cost = Tally()
        for cell in pool.cells:
            cost.merge(cell.cost_nanodollars)
        outline = next(each for each in experiments[0].models if each.id == key.model_id)
        yield Tutor(
            model=outline.model(),
            counts=fidelity_counts(pool.cells, plans, cluster),
            kept=figure_estimate(run_scores(pool.cells, cluster), OVERALL, composition),
            cost=cost,
            responses=sum(cell.responses for cell in pool.cells),
            planned_runs=len(plans) * sum(each.repeats for each in experiments),
            repeats=max(each.repeats for each in experiments),
            experiment_ids=tuple(each.experiment_id for each in experiments),
        )


def _pool(
    key: RowKey,
    experiments: Sequence[ExperimentOutline],
    cells: Mapping[tuple[str, str], Sequence[Cell]],
    dimension: str | None,
) -> Pool:
    own = [
        cell for each in experiments for cell in cells.get((each.experiment_id, key.model_id), ())
    ]
    return pooled(key.model_id, experiments, own, dimension)


def _best_first(tutor: Tutor) -> tuple[bool, float, str]:
    kept = tutor.turns_kept
    return (kept is None, -(kept or 0.0), tutor.model.id)


def ranked(tutors: Sequence[Tutor]) -> list[Tutor]:
    """Return the tutors that have a rank: the real ones, or reference tutors among themselves."""
    with_curve = [each for each in tutors if each.turns_kept is not None]
    ranked = [each for each in with_curve if not is_reference(each.model)] or with_curve
    return [each for each in ranked if each.scenarios >= FEWEST_RANKED]


def compared(
    ranked: Sequence[Tutor], horizon: int
) -> tuple[dict[str, Place], tuple[PairFigures, ...]]:
    """Return the place of each ranked tutor, by its id, and the difference of each pair."""
    if len(ranked) > MOST_COMPARED:
        return {}, ()
    counts: list[FidelityCounts] = [each.counts for each in ranked]
    ranking = fidelity_ranking(counts)
    names = [each.model.id for each in ranked]
    places = {
        name: Place(rank, interval)
        for rank, (name, interval) in enumerate(zip(names, ranking.ranks, strict=True), 1)
    }
    if len(ranked) > MOST_PAIRED:
        return places, ()
    corrected = holm([each.p_value for each in ranking.differences])
    pairs = tuple(
        _pair_figures(pair, difference, horizon, p_value, is_settled=is_settled)
        for pair, difference, p_value, is_settled in zip(
            combinations(names, 2), ranking.differences, corrected, ranking.settled, strict=True
        )
    )
    return places, pairs


def fidelity_figures(tutor: Tutor, place: Place | None) -> FidelityFigures:
    """Return the figures of a tutor's row."""
    counts, curve, key = tutor.counts, tutor.counts.curve, tutor.counts.key_curve
    lost = lost_figures(counts)
    return FidelityFigures(
        model_id=tutor.model.id,
        model_name=tutor.model.display_name,
        kind="reference" if is_reference(tutor.model) else "model",
        rank=None if place is None else place.rank,
        rank_interval=None if place is None else place.interval,
        turns_kept=tutor.turns_kept,
        turns_kept_interval=None if curve is None else curve.mean_interval,
        half_life=_half_life(curve, lost),
        curve=_points(curve),
        started=ShareFigure.of(counts.started),
        kept=tutor.kept.mean,
        kept_interval=tutor.kept.interval,
        recovery=ShareFigure.of(ratio(counts.recovery)),
        flips=counts.flips,
        key_said=None if key is None else ShareFigure.of(_happened(key)),
        key_curve=_points(key),
        kinds=_kinds(counts),
        pass_power=_pass_powers(counts, tutor.repeats),
        scenarios=tutor.scenarios,
        runs=sum(counts.runs.values()),
        planned_runs=tutor.planned_runs,
        lost=lost,
        total_cost_usd=total_usd(tutor.cost),
        cost_known=known_share(tutor.cost, tutor.responses),
        turns={
            scenario: tuple((turn.kept, turn.lapsed, turn.unknown) for turn in turns)
            for scenario, turns in counts.turns.items()
        },
        experiment_ids=tutor.experiment_ids,
    )


def _points(curve: Survival[str] | None) -> tuple[CurvePoint, ...]:
    if curve is None:
        return ()
    return tuple(
        CurvePoint(
            turn=turn,
            at_risk=counted.cases,
            happened=counted.events,
            left=float(left),
            interval=interval,
        )
        for turn, counted, left, interval in zip(
            count(1), curve.turns, curve.kept, curve.intervals(), strict=False
        )
    )


def _half_life(curve: Survival[str] | None, lost: LostRuns | None) -> HalfLife | None:
    if curve is None or (lost is not None and lost.share > TOO_MANY_LOST):
        return None
    return HalfLife(turn=curve.half_life, interval=curve.half_life_interval())


def _happened(curve: Survival[str]) -> Linearised[str]:
    """Return the share of runs to which it has happened by the last turn."""
    left = curve.at(curve.horizon)
    return Linearised(1 - left.value, {each: -moved for each, moved in left.deviations.items()})


def lost_figures(counts: FidelityCounts) -> LostRuns | None:
    lost, runs = counts.lost.runs, sum(counts.runs.values())
    bounds = counts.bounds() if lost else None
    return None if bounds is None else LostRuns(runs=lost, share=lost / runs, turns_kept=bounds)


def _kinds(counts: FidelityCounts) -> tuple[KindFigures, ...]:
    found = kind_counts(counts)
    pressing = {kind: each for kind, each in found.items() if kind != EFFORT}
    lapsed = _beside_effort({kind: each.more_lapsed for kind, each in pressing.items()})
    broke = _beside_effort({kind: each.more_broke for kind, each in pressing.items()})
    return tuple(
        KindFigures(
            kind=kind,
            lapsed=ShareFigure(
                share=each.lapsed.value,
                interval=each.lapsed.interval,
                scenarios=len(each.lapsed.deviations),
            ),
            more_lapsed=lapsed.get(kind),
            broke=ShareFigure.of(each.broke),
            more_broke=broke.get(kind),
        )
        for kind, each in found.items()
    )


def _beside_effort(differences: Mapping[str, Difference]) -> dict[str, MoreFigure]:
    known = {kind: each for kind, each in differences.items() if each.mean is not None}
    corrected = holm([each.p_value for each in known.values()])
    return {
        kind: MoreFigure(
            difference=each.mean or 0.0,
            interval=each.interval,
            p_value=p_value,
            is_real=p_value <= FAMILY_ERROR and bool(each.mean),
        )
        for (kind, each), p_value in zip(known.items(), corrected, strict=True)
    }


def _pass_powers(counts: FidelityCounts, repeats: int) -> tuple[PassPower, ...]:
    found = []
    for runs in range(1, repeats + 1):
        power = pass_power(counts.watched, runs)
        if power is not None:
            found.append(
                PassPower(
                    runs=runs,
                    share=power.value,
                    interval=power.interval,
                    scenarios=len(power.deviations),
                )
            )
    return tuple(found)


def _pair_figures(
    models: tuple[str, str],
    difference: Difference,
    horizon: int,
    p_value: float,
    *,
    is_settled: bool,
) -> PairFigures:
    mean, ends = difference.mean, difference.interval
    return PairFigures(
        first=models[0],
        second=models[1],
        scenarios=difference.scenarios,
        difference=None if mean is None else mean * horizon,
        interval=None if ends is None else (ends[0] * horizon, ends[1] * horizon),
        p_value=p_value,
        is_real=is_settled and p_value <= FAMILY_ERROR and bool(mean),
        is_equivalent=equivalence(difference, MARGIN_TURNS / horizon).is_shown,
        scenarios_to_tell=scenarios_to_tell(difference),
    )
