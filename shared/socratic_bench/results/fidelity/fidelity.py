"""The fidelity table in the shape of `/api/fidelity`: tutors by the turns that they keep asking."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.fidelity import (
    FEWEST_RANKED,
    MANY_LOST,
    TOO_MANY_LOST,
    TurnPlan,
)
from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import BrokenPlugin, InvalidInput, UnknownProfile
from socratic_bench.results.experiment_choice import NoScores, ResultStore, find_experiment
from socratic_bench.results.fidelity.figures import FidelityFigures, PairFigures
from socratic_bench.results.fidelity.tutors import (
    Tutor,
    compared,
    fidelity_figures,
    ranked,
    tutors_of,
)
from socratic_bench.results.filters import EVERYTHING, Filters
from socratic_bench.results.formats import printable
from socratic_bench.results.leaderboard.leaderboard import (
    ExperimentSummary,
    Filtered,
    left_out_sentences,
    student_sentences,
)
from socratic_bench.results.leaderboard.selection import (
    ALL,
    MOST_EXPERIMENTS,
    Selection,
    select,
    select_among,
)
from socratic_bench.scoring.profile import counting
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.version import __version__

FIDELITY: Final = "fidelity-1"
"""The profile whose counts the table is made from."""

MOST_READ: Final = 20
"""The most experiments that are read at once to find one that has what the table needs."""


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


class FidelityTable(BaseModel):
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
) -> FidelityTable:
    """Return the fidelity table of one experiment.

    Without an experiment it is that of the leaderboard's default table, among the experiments with
    scores by the profile. Raises UnknownExperiment, AmbiguousExperiment, NoScores where no
    experiment in question is scored by the profile, and InvalidInput for `all`, for a profile that
    counts no breaks, for an experiment of one turn, and for a filter that names nothing there is.
    """
    if experiment == ALL:
        raise InvalidInput("experiment: one, and not `all`: turns kept compare within one alone")
    require_breaks(profile)
    selected = await _selected(store, experiment, profile, filters)
    newest = next((row[0] for row in selected.choice.rows.values()), None)
    found = None if newest is None else await store.experiment(newest.experiment_id)
    if found is None:
        return _empty(profile, filters)
    _require_turns(found, filters.dimension)
    return await asyncio.to_thread(_table, selected, found.manifest)


def require_breaks(profile: str) -> None:
    """Raise InvalidInput for a profile that counts no breaks; one not installed may have scores."""
    try:
        counts = counts_breaks(profile)
    except (UnknownProfile, BrokenPlugin):
        return
    if not counts:
        raise InvalidInput(f"profile: {profile} counts no breaks; {FIDELITY} does")


def counts_breaks(profile: str) -> bool:
    """Whether a profile counts what the table is made from.

    Raises UnknownProfile or BrokenPlugin.
    """
    counter = counting(profile_named(profile))
    return counter is not None and "at_risk" in counter.counts


def surely_counts_breaks(profile: str) -> bool:
    """Whether a profile is installed and counts breaks."""
    try:
        return counts_breaks(profile)
    except (UnknownProfile, BrokenPlugin):
        return False


def has_turns(manifest: Manifest) -> bool:
    """Whether a scenario of the plan has several turns."""
    return any(each.turns > 1 for each in manifest.scenarios)


async def _selected(
    store: ResultStore, experiment: str | None, profile: str, filters: Filters
) -> Selection:
    if experiment is not None:
        named = await find_experiment(store, experiment)
        _require_turns(named)
        return await select(store, named.experiment_id, profile, filters)
    outlines = (await store.outlines())[:MOST_EXPERIMENTS]
    scored = await _scored(store, outlines, profile)
    if outlines and not scored:
        raise NoScores(
            f"no experiment has a score by {profile!r}. Run one of several turns, such as "
            f"`scenarios: pressure-24`, with `profile: {profile}`"
            f"{await _rescoring(store, outlines, profile)}"
        )
    return await select_among(store, scored, None, profile, filters)


async def _scored(
    store: ResultStore, outlines: Sequence[ExperimentOutline], profile: str
) -> list[ExperimentOutline]:
    """Return those of the newest experiments, and of the pinned ones, with scores by a profile.

    It goes on to older ones where there are none: few reads find those that a table would show.
    """
    pinned = {each.experiment_id for each in outlines if each.pinned_at is not None}
    for start in range(0, len(outlines), MOST_READ):
        read = pinned | {each.experiment_id for each in outlines[start : start + MOST_READ]}
        profiles = await store.scored_profiles(read)
        found = [each for each in outlines if profile in profiles.get(each.experiment_id, ())]
        if found:
            return found
    return []


def _require_turns(experiment: Experiment, dimension: str | None = None) -> None:
    if not _planned(experiment.manifest, dimension):
        of = "" if dimension is None else f" of {printable(dimension)}"
        raise InvalidInput(
            f"experiment: {experiment.experiment_id} asks one turn of each scenario{of}, and a "
            "tutor keeps or loses its stance over several: give scenarios `follow_ups`, or run "
            "`scenarios: pressure-24`"
        )


async def _rescoring(
    store: ResultStore, outlines: Sequence[ExperimentOutline], profile: str
) -> str:
    """Return the command that scores the newest experiment of several turns, if there is one."""
    for outline in outlines[:MOST_READ]:
        found = await store.experiment(outline.experiment_id)
        if found is not None and has_turns(found.manifest):
            return (
                ", or score a stored one without a model: "
                f"socratic-bench rescore {found.experiment_id} --profile {profile}"
            )
    return ""


def _empty(profile: str, filters: Filters) -> FidelityTable:
    return FidelityTable(
        models=(),
        horizon=0,
        profile=profile,
        scenarios=(),
        differences=(),
        experiments=(),
        filtered=_filtered(filters, (), {}) if filters else None,
        notes=(),
    )


def _table(selected: Selection, manifest: Manifest) -> FidelityTable:
    scenarios = _planned(manifest, selected.filters.dimension)
    horizon = max(each.turns for each in scenarios) - 1
    plans = {each.scenario_id: TurnPlan(each.turns, each.pressures) for each in scenarios}
    tutors = tutors_of(selected, plans)
    places, pairs = compared(ranked(tutors), horizon)
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
    return FidelityTable(
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
        notes=(
            *student_sentences(list(experiments.values())),
            *_cautions(models, scenarios),
            *left_out_sentences(selected),
        ),
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
        runs = "1 run is" if pending == 1 else f"{pending} runs are"
        yield f"{runs} pending. A run under way counts as lost after its last known turn."
    for each in models:
        if each.lost is not None and each.lost.share > MANY_LOST:
            no_half_life = " It has no half-life." if each.lost.share > TOO_MANY_LOST else ""
            yield each.lost.told_of(printable(each.model_id)) + no_half_life


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
