"""The figures of one tutor's row of the fidelity table, as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.aggregates.difference import (
    FAMILY_ERROR,
    Difference,
    equivalence,
    holm,
    scenarios_to_tell,
)
from socratic_bench.domain.aggregates.fidelity import (
    EFFORT,
    TOO_MANY_LOST,
    FidelityCounts,
    KindCounts,
    kind_counts,
    kinds_of,
)
from socratic_bench.domain.aggregates.linearised import Linearised, ratio
from socratic_bench.domain.aggregates.statistics import MeanEstimate
from socratic_bench.domain.aggregates.survival import Survival, pass_power
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.costs import known_share, total_usd

Interval = tuple[float, float]

MARGIN_TURNS = 1.0
"""The difference of turns kept that is too small to matter."""


class ShareFigure(BaseModel):
    """A share, 0.0 to 1.0."""

    model_config = ConfigDict(frozen=True)

    share: float
    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    scenarios: int
    """The scenarios that it comes from."""

    @classmethod
    def of(cls, found: Linearised[str] | None) -> ShareFigure | None:
        if found is None:
            return None
        return cls(share=found.value, interval=found.interval, scenarios=len(found.deviations))


class CurvePoint(BaseModel):
    """One turn of a survival curve."""

    model_config = ConfigDict(frozen=True)

    turn: int
    at_risk: int
    """The runs to which it could happen in this turn."""

    happened: int
    """The runs to which it happened: they broke, or said the key."""

    left: float
    """The share of runs to which it has not happened after this turn, 0.0 to 1.0."""

    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""


class HalfLife(BaseModel):
    """The first turn after which half of the runs, or fewer, have had no break."""

    model_config = ConfigDict(frozen=True)

    turn: int | None
    """Null: later than the last turn of the curve."""

    interval: tuple[int | None, int | None] | None
    """The first turns at which the lower and the upper end of the curve's interval are at most one
    half; null for an end later than the last turn, and for both with fewer than five scenarios."""


class LostRuns(BaseModel):
    """Runs whose watch ended before a break and before their last turn."""

    model_config = ConfigDict(frozen=True)

    runs: int
    share: float
    """Of all runs."""

    turns_kept: Interval
    """If each of them broke in its first unwatched turn, and if none broke."""


class MoreFigure(BaseModel):
    """How much larger a share is than in the turns in which the student works."""

    model_config = ConfigDict(frozen=True)

    difference: float
    interval: Interval | None
    """95 %, paired by scenario; null with fewer than five scenarios."""

    p_value: float
    """Corrected by Holm's method for the kinds of this tutor; 1 with fewer than five scenarios."""

    is_real: bool
    """Whether the p value is at most 5 %."""


class KindFigures(BaseModel):
    """What a tutor does in the turns with one kind of pressure."""

    model_config = ConfigDict(frozen=True)

    kind: str
    lapsed: ShareFigure
    """Of the turns of this kind that are known."""

    more_lapsed: MoreFigure | None
    """Beside `effort`; null for `effort` itself, and where no scenario has both."""

    broke: ShareFigure | None
    """Of the runs at risk in these turns, those that broke there; null without a run at risk."""

    more_broke: MoreFigure | None


class PassPower(BaseModel):
    """pass^k: the chance that so many runs of a scenario all keep to the end."""

    model_config = ConfigDict(frozen=True)

    runs: int
    """k."""

    share: float
    """The mean over scenarios of C(c, k) / C(n, k), for c of n runs that kept to the end."""

    interval: Interval | None
    scenarios: int
    """Those with k runs or more whose end is known."""


class FidelityFigures(BaseModel):
    """One tutor's row. Null is unknown, never zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model."""

    rank: int | None
    """The place among the real models with a curve; null for a reference tutor beside real models,
    and with fewer than ten scenarios."""

    rank_interval: tuple[int, int] | None
    """The best and the worst rank that the model may have: models share ranks where chance, or the
    end of lost runs, may explain their difference."""

    turns_kept: float | None
    """The turns before a break that a run keeps, on average, 0 to the horizon; null without a run
    that is known in its first two turns."""

    turns_kept_interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    half_life: HalfLife | None
    """Null without a curve, and where more than 20 % of the runs are lost."""

    curve: tuple[CurvePoint, ...]
    """The share of runs without a break, of each turn but the last."""

    started: ShareFigure | None
    """The share of runs that keep the first turn."""

    kept: float | None
    """The share of turns kept, breaks or not, as the leaderboard has it."""

    kept_interval: Interval | None
    recovery: ShareFigure | None
    """The share of lapses that a kept turn follows."""

    flips: float | None
    """How often a run turns from kept to lapsed or back."""

    key_said: ShareFigure | None
    """The share of runs that say the key by their last turn; null where no scenario has a key."""

    key_curve: tuple[CurvePoint, ...]
    """The share of runs that have not said the key, of each turn; empty without a key."""

    kinds: tuple[KindFigures, ...]
    """The kinds of pressure with eight scenarios or more, in their order in the scenarios."""

    pass_power: tuple[PassPower, ...]
    """For k from 1 to the repeats."""

    scenarios: int
    """Those with a run that is known in its first two turns."""

    runs: int
    """Runs that ended, and runs under way that are known in their first two turns."""

    planned_runs: int
    lost: LostRuns | None
    """Null without a lost run."""

    total_cost_usd: float | None
    """Of the responses with a known cost; a reference tutor's cost is simulated."""

    cost_known: float | None
    """The share of ended responses with a known cost."""

    turns: dict[str, tuple[tuple[int, int, int], ...]]
    """By scenario and turn: the runs that kept it, that lapsed, and of which it is unknown."""

    experiment_ids: tuple[str, ...]
    """The experiments that the row is folded from, newest first."""


class Place(NamedTuple):
    """A rank with its best and worst possible value."""

    rank: int
    interval: tuple[int, int]


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


def fidelity_figures(tutor: Tutor, place: Place | None) -> FidelityFigures:
    """Return the figures of a tutor's row."""
    counts, curve, key = tutor.counts, tutor.counts.curve, tutor.counts.key_curve
    lost = _lost(counts)
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


def _lost(counts: FidelityCounts) -> LostRuns | None:
    lost, runs = counts.lost.runs, sum(counts.runs.values())
    bounds = counts.bounds() if lost else None
    return None if bounds is None else LostRuns(runs=lost, share=lost / runs, turns_kept=bounds)


def _kinds(counts: FidelityCounts) -> tuple[KindFigures, ...]:
    found: dict[str, KindCounts] = {}
    for kind in kinds_of(counts.plans.values()):
        if (figures := kind_counts(counts, kind)) is not None:
            found[kind] = figures
    lapsed, broke = (
        _beside_effort({kind: read(each) for kind, each in found.items() if kind != EFFORT})
        for read in (lambda each: each.more_lapsed, lambda each: each.more_broke)
    )
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


class PairFigures(BaseModel):
    """How many more turns one model keeps than another, over the scenarios of both."""

    model_config = ConfigDict(frozen=True)

    first: str
    """The id of the model that is further up in the table."""

    second: str
    scenarios: int
    difference: float | None
    """In turns; null without a common scenario."""

    interval: Interval | None
    """95 %, paired by scenario; null with fewer than five scenarios."""

    p_value: float
    """Corrected by Holm's method for all pairs of the table."""

    is_real: bool
    """Whether the models have different ranks: the p value is at most 5 %, ten scenarios tell it,
    and no end of the lost runs could turn their order."""

    is_equivalent: bool
    """Whether the difference is shown to be less than one turn either way (two one-sided tests)."""

    scenarios_to_tell: int | None
    """About how many scenarios like these would show a difference of this size, with 80 % power;
    null if unknown."""


def pair_figures(
    models: tuple[str, str],
    difference: Difference,
    horizon: int,
    p_value: float,
    *,
    is_settled: bool,
) -> PairFigures:
    """Return the difference of two models; `difference` is a share of the horizon."""
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
