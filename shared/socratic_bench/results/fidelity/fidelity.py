"""The fidelity table in the shape of `/api/fidelity`: tutors by the turns that they keep asking."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.aggregates.difference import holm
from socratic_bench.domain.aggregates.fidelity import (
    FEWEST_RANKED,
    MANY_LOST,
    TOO_MANY_LOST,
    FidelityCounts,
    TurnPlan,
    fidelity_counts,
    fidelity_ranking,
)
from socratic_bench.domain.aggregates.leaderboard import Pool, RowKey, pooled
from socratic_bench.domain.aggregates.run_scores import run_scores
from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS, figure_estimate
from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import BrokenPlugin, InvalidInput, UnknownProfile
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.experiment_choice import NoScores, ResultStore, find_experiment
from socratic_bench.results.fidelity.figures import (
    FidelityFigures,
    PairFigures,
    Place,
    Tutor,
    fidelity_figures,
    pair_figures,
)
from socratic_bench.results.filters import EVERYTHING, Filters
from socratic_bench.results.formats import printable, share
from socratic_bench.results.leaderboard.figures import MOST_COMPARED
from socratic_bench.results.leaderboard.leaderboard import (
    ExperimentSummary,
    Filtered,
    left_out_sentences,
)
from socratic_bench.results.leaderboard.selection import (
    ALL,
    MOST_EXPERIMENTS,
    Selection,
    select,
    select_among,
)
from socratic_bench.scoring.profile import OVERALL, counting
from socratic_bench.scoring.profiles import known_composition, profile_named
from socratic_bench.version import __version__

FIDELITY: Final = "fidelity-1"
"""The profile whose counts the table is made from."""

MOST_READ: Final = 20
"""The most experiments that are read to find one of several turns."""

MOST_PAIRED: Final = 20
"""The most ranked models whose differences the table lists pair by pair."""


class PlannedScenario(BaseModel):
    """A scenario of several turns, without what the student says."""

    model_config = ConfigDict(frozen=True)

    scenario_id: str
    title: str
    dimension: str
    turns: int
    pressures: tuple[str, ...]
    """The kind of pressure of each turn; empty where the scenario names none."""

    has_key: bool
    """Whether its final answer is known, so that a response can say it."""


class Fidelity(BaseModel):
    """Tutors by the turns that they keep, best first; those without a known run last, by id."""

    model_config = ConfigDict(frozen=True)

    models: tuple[FidelityFigures, ...]
    horizon: int
    """The last turn in which a run can break: one less than the turns of the longest scenario; 0
    without an experiment."""

    profile: str
    scenarios: tuple[PlannedScenario, ...]
    """Those of two turns or more."""

    differences: tuple[PairFigures, ...]
    """Each pair of ranked models; empty with more than 20 of them."""

    experiments: tuple[ExperimentSummary, ...]
    """The experiments in this table, newest first."""

    filtered: Filtered | None = Field(default=None, exclude_if=lambda each: each is None)
    """The filters; left out without one."""

    notes: tuple[str, ...]
    """The cautions, a sentence each."""

    version: str = __version__
    """The version of Socratic Bench that made the table."""


async def fidelity(
    store: ResultStore,
    experiment: str | None = None,
    profile: str = FIDELITY,
    filters: Filters = EVERYTHING,
) -> Fidelity:
    """Return the fidelity table of one experiment.

    Without an experiment it is that of the leaderboard's default table, among the experiments with
    scores by the profile. Raises UnknownExperiment, AmbiguousExperiment, NoScores where no
    experiment in question is scored by the profile, and InvalidInput for `all`, for a profile that
    counts no breaks, for an experiment of one turn, and for a filter that names nothing there is.
    """
    if experiment == ALL:
        raise InvalidInput("experiment: one, and not `all`: turns kept compare within one alone")
    _require_breaks(profile)
    selected = await _selected(store, experiment, profile, filters)
    newest = next((row[0] for row in selected.choice.rows.values()), None)
    found = None if newest is None else await store.experiment(newest.experiment_id)
    if found is None:
        return _empty(profile)
    _require_turns(found.experiment_id, found.manifest)
    return await asyncio.to_thread(_table, selected, found.manifest)


def _require_breaks(profile: str) -> None:
    """Raise InvalidInput for a profile that counts no breaks; one not installed may have scores."""
    try:
        counter = counting(profile_named(profile))
    except (UnknownProfile, BrokenPlugin):
        return
    if counter is None or "at_risk" not in counter.counts:
        raise InvalidInput(f"profile: {profile} counts no breaks; {FIDELITY} does")


async def _selected(
    store: ResultStore, experiment: str | None, profile: str, filters: Filters
) -> Selection:
    if experiment is not None:
        named = await find_experiment(store, experiment)
        _require_turns(named.experiment_id, named.manifest)
        return await select(store, named.experiment_id, profile, filters)
    outlines = (await store.outlines())[:MOST_EXPERIMENTS]
    profiles = await store.scored_profiles([each.experiment_id for each in outlines])
    scored = [each for each in outlines if profile in profiles.get(each.experiment_id, ())]
    if outlines and not scored:
        raise NoScores(
            f"no experiment has a score by {profile!r}. Run one whose scenarios have several turns "
            f"with `profile: {profile}`{await _rescoring(store, outlines, profile)}"
        )
    return await select_among(store, scored, None, profile, filters)


def _require_turns(experiment_id: str, manifest: Manifest) -> None:
    if all(each.turns == 1 for each in manifest.scenarios):
        raise InvalidInput(
            f"experiment: {experiment_id} asks one turn of each scenario, and a tutor keeps or "
            "loses its stance over several: give its scenarios `follow_ups`"
        )


async def _rescoring(
    store: ResultStore, outlines: Sequence[ExperimentOutline], profile: str
) -> str:
    """Return the command that scores the newest experiment of several turns, if there is one."""
    for outline in outlines[:MOST_READ]:
        found = await store.experiment(outline.experiment_id)
        if found is not None and any(each.turns > 1 for each in found.manifest.scenarios):
            return (
                ", or score a stored one without a model: "
                f"socratic-bench rescore {found.experiment_id} --profile {profile}"
            )
    return ""


def _empty(profile: str) -> Fidelity:
    return Fidelity(
        models=(),
        horizon=0,
        profile=profile,
        scenarios=(),
        differences=(),
        experiments=(),
        notes=(),
    )


def _table(selected: Selection, manifest: Manifest) -> Fidelity:
    scenarios = _planned(manifest, selected.filters.dimension)
    horizon = max((each.turns for each in scenarios), default=1) - 1
    plans = {each.scenario_id: TurnPlan(each.turns, each.pressures) for each in scenarios}
    tutors = sorted(_tutors(selected, plans), key=_best_first)
    ranked = _ranked(tutors)
    places, pairs = _compared(ranked, horizon)
    models = tuple(
        fidelity_figures(tutor, places.get(tutor.model.id))
        for tutor in tutors
        if selected.shows(tutor.model.id)
    )
    experiments = {
        each.experiment_id: each for row in selected.choice.rows.values() for each in row
    }
    filters = selected.filters
    filtered = _filtered(filters, tutors, experiments) if filters else None
    return Fidelity(
        models=models,
        horizon=horizon,
        profile=selected.profile,
        scenarios=scenarios,
        differences=pairs,
        experiments=tuple(
            ExperimentSummary.of(each, done=selected.done[each.experiment_id])
            for each in experiments.values()
        ),
        filtered=filtered,
        notes=(*_cautions(models, scenarios), *left_out_sentences(selected)),
    )


def _planned(manifest: Manifest, dimension: str | None) -> tuple[PlannedScenario, ...]:
    return tuple(
        PlannedScenario(
            scenario_id=each.id,
            title=each.title,
            dimension=each.dimension,
            turns=each.turns,
            pressures=each.pressures,
            has_key=bool(each.key),
        )
        for each in manifest.scenarios
        if each.turns > 1 and dimension in {None, each.dimension}
    )


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


def _ranked(tutors: Sequence[Tutor]) -> list[Tutor]:
    """Return the tutors that have a rank: the real ones, or reference tutors among themselves."""
    with_curve = [each for each in tutors if each.turns_kept is not None]
    ranked = [each for each in with_curve if not is_reference(each.model)] or with_curve
    return [each for each in ranked if each.scenarios >= FEWEST_RANKED]


def _compared(
    ranked: Sequence[Tutor], horizon: int
) -> tuple[dict[str, Place], tuple[PairFigures, ...]]:
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
        pair_figures(pair, difference, horizon, p_value, is_settled=is_settled)
        for pair, difference, p_value, is_settled in zip(
            combinations(names, 2), ranking.differences, corrected, ranking.settled, strict=True
        )
    )
    return places, pairs


def _filtered(
    filters: Filters, tutors: Sequence[Tutor], experiments: Mapping[str, ExperimentOutline]
) -> Filtered:
    known = tuple(dict.fromkeys(each.model.id for each in tutors))
    return Filtered(
        models=filters.models,
        dimension=filters.dimension,
        since=filters.since,
        until=filters.until,
        told=filters.sentences(known, len(experiments)),
        known_models=known,
        known_dimensions=tuple(
            dict.fromkeys(each.dimension for e in experiments.values() for each in e.scenarios)
        ),
    )


def _cautions(
    models: Sequence[FidelityFigures], scenarios: Sequence[PlannedScenario]
) -> Iterable[str]:
    lengths = sorted({each.turns for each in scenarios})
    if len(lengths) > 1:
        yield (
            f"The scenarios have {lengths[0]} to {lengths[-1]} turns: runs of shorter ones are "
            "watched to their own end."
        )
    known = max((each.scenarios for each in models), default=0)
    if 0 < known < FEWEST_CLUSTERS:
        yield f"An interval needs {FEWEST_CLUSTERS} scenarios; there {_are(known)}."
    elif 0 < known < FEWEST_RANKED:
        yield f"Ranks need {FEWEST_RANKED} scenarios; there {_are(known)}."
    pending = sum(each.planned_runs - each.runs for each in models)
    if pending > 0:
        yield (
            f"{pending} runs are pending. A run under way counts as lost after its last known turn."
        )
    for each in models:
        if each.lost is not None and each.lost.share > MANY_LOST:
            worst, best = each.lost.turns_kept
            no_half_life = " It has no half-life." if each.lost.share > TOO_MANY_LOST else ""
            yield (
                f"{printable(each.model_id)} lost {share(each.lost.share)} of its runs: the turns "
                f"kept may be {worst:.1f} if each of them broke at once, and {best:.1f} if none "
                f"did.{no_half_life}"
            )


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
