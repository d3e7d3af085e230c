"""The selection of a table's experiments, which belong together, and of their cells.

The default table holds one set of test conditions: figures under different ones do not compare. It
prefers full experiments to pilots and complete ones to running ones, so that a trial run replaces
no result. A person's pin overrules both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.leaderboard import (
    Leaderboard,
    Pool,
    RowKey,
    Rows,
    build_leaderboard,
)
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import AmbiguousExperiment, UnknownExperiment
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.cache.pools import KnownPools, read_cells
from socratic_bench.results.experiment_choice import ResultStore, find_experiment, scored_by
from socratic_bench.results.filters import EVERYTHING, Filters
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import known_composition


class LeftOutReason(StrEnum):
    """The reason why an experiment is not in a table."""

    NOT_PINNED = "not_pinned"
    """Another one is pinned."""

    OTHER_PROFILE = "other_profile"
    PILOT = "pilot"
    """A fuller one under its conditions has twice as many runs of a model, or more. Or it is a
    trial, with one model or few runs of each, and has half as many runs as the fullest of all, or
    fewer."""

    OTHER_CONDITIONS = "other_conditions"
    NO_SCORE = "no_score"
    """It is complete, and none of its runs has a score."""

    INCOMPLETE = "incomplete"
    """Each of its models has a complete result under the same conditions."""

    OLDER = "older"
    """Each of its models has a newer result under the same conditions."""

    TOO_MANY = "too_many"
    """One table cannot hold it beside newer ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The rows of a table, and the experiments that it leaves out."""

    rows: Rows
    left_out: Mapping[str, LeftOutReason]
    """By the id of the experiment, newest first."""


def default_choice(experiments: Sequence[ExperimentOutline], done: Mapping[str, int]) -> Choice:
    """Choose one set of conditions, and each model's best experiment under them.

    `experiments` are newest first; `done` gives the done runs of those that are not complete. The
    latest pinned experiment decides about the conditions; pinned ones alone are then in the table.
    Without a pin the newest complete experiment decides that is no pilot.
    """
    if not experiments:
        return Choice({}, {})
    runs = {each.experiment_id: _done(each, done) for each in experiments}
    pinned = [each for each in experiments if each.pinned_at is not None]

    def runs_of_a_model(experiment: ExperimentOutline) -> float:
        return runs[experiment.experiment_id] / len(experiment.models)

    pilots = _pilots(experiments, runs)
    leading = (
        max(pinned, key=lambda each: each.pinned_at or each.created_at)
        if pinned
        else _first_complete(
            [each for each in experiments if each.experiment_id not in pilots], runs
        )
    )
    together = [
        each for each in pinned or experiments if each.conditions_id == leading.conditions_id
    ]

    rows: dict[RowKey, tuple[ExperimentOutline, ...]] = {}
    for model_id in dict.fromkeys(id_ for each in together for id_ in each.model_ids):
        asking = [each for each in together if model_id in each.model_ids]
        best = _preferred(asking, runs_of_a_model, runs)
        rows[RowKey(model_id, best.conditions_id)] = (best,)
    shown = {each.experiment_id for chosen in rows.values() for each in chosen}
    fullest_of_a_model = max(map(runs_of_a_model, together))

    def reason(experiment: ExperimentOutline) -> LeftOutReason:
        if pinned and experiment.pinned_at is None:
            return LeftOutReason.NOT_PINNED
        if experiment.conditions_id == leading.conditions_id:
            if _is_pilot(runs_of_a_model(experiment), fullest_of_a_model):
                return LeftOutReason.PILOT
            is_complete = runs[experiment.experiment_id] >= experiment.planned_runs
            return LeftOutReason.OLDER if is_complete else LeftOutReason.INCOMPLETE
        if experiment.profile != leading.profile:
            return LeftOutReason.OTHER_PROFILE
        is_pilot = experiment.experiment_id in pilots
        return LeftOutReason.PILOT if is_pilot else LeftOutReason.OTHER_CONDITIONS

    return Choice(
        rows,
        {
            each.experiment_id: reason(each)
            for each in experiments
            if each.experiment_id not in shown
        },
    )


def every_choice(experiments: Sequence[ExperimentOutline]) -> Choice:
    """Choose all experiments of the newest one's profile: a row for each model and conditions.

    A row pools experiments under the same conditions. `experiments` are newest first.
    """
    profile = experiments[0].profile if experiments else None
    rows: dict[RowKey, tuple[ExperimentOutline, ...]] = {}
    for experiment in experiments:
        if experiment.profile == profile:
            for model_id in experiment.model_ids:
                key = RowKey(model_id, experiment.conditions_id)
                rows[key] = (*rows.get(key, ()), experiment)
    others = (each for each in experiments if each.profile != profile)
    return Choice(rows, {each.experiment_id: LeftOutReason.OTHER_PROFILE for each in others})


def within(choice: Choice, experiment_ids: Iterable[str]) -> Choice:
    """Leave out the experiments that one table cannot hold."""
    held = set(experiment_ids)
    rows = {
        key: kept
        for key, chosen in choice.rows.items()
        if (kept := tuple(each for each in chosen if each.experiment_id in held))
    }
    wanted = {each.experiment_id: each for chosen in choice.rows.values() for each in chosen}
    beyond = sorted(
        (each for id_, each in wanted.items() if id_ not in held),
        key=lambda each: (each.created_at, each.experiment_id),
        reverse=True,
    )
    return Choice(
        rows, {**choice.left_out, **{each.experiment_id: LeftOutReason.TOO_MANY for each in beyond}}
    )


def _done(experiment: ExperimentOutline, done: Mapping[str, int]) -> int:
    """Return the runs of an experiment; all of them where narrow intervals spared it some."""
    is_complete = experiment.completed_at is not None
    return experiment.most_runs if is_complete else done.get(experiment.experiment_id, 0)


def _preferred(
    experiments: Sequence[ExperimentOutline],
    size: Callable[[ExperimentOutline], float],
    runs: Mapping[str, int],
) -> ExperimentOutline:
    """Return the newest complete experiment that is no pilot, or else the newest that is none."""
    fullest = max(map(size, experiments))
    return _first_complete(
        [each for each in experiments if not _is_pilot(size(each), fullest)], runs
    )


def _first_complete(
    experiments: Sequence[ExperimentOutline], runs: Mapping[str, int]
) -> ExperimentOutline:
    """Return the first complete one of these, or else the first."""
    complete = [each for each in experiments if runs[each.experiment_id] >= each.planned_runs]
    return (complete or experiments)[0]


_TRIAL_BELOW: Final = 10
"""Runs of a model below which an experiment replaces no fuller one under other conditions."""


def _pilots(experiments: Sequence[ExperimentOutline], runs: Mapping[str, int]) -> set[str]:
    """Return the ids of the pilots, as LeftOutReason.PILOT has them."""
    of_a_model = {
        each.experiment_id: runs[each.experiment_id] / len(each.models) for each in experiments
    }
    fullest, under = max(runs.values()), dict[str, float]()
    for each in experiments:
        known = under.get(each.conditions_id, 0)
        under[each.conditions_id] = max(known, of_a_model[each.experiment_id])
    found = set()
    for each in experiments:
        size = of_a_model[each.experiment_id]
        is_trial = len(each.models) == 1 or size < _TRIAL_BELOW
        is_small = is_trial and _is_pilot(runs[each.experiment_id], fullest)
        if is_small or _is_pilot(size, under[each.conditions_id]):
            found.add(each.experiment_id)
    return found


def _is_pilot(size: float, fullest: float) -> bool:
    return size < fullest and 2 * size <= fullest


ALL = "all"
"""The word that selects all experiments."""

MOST_EXPERIMENTS: Final = 500
"""The most experiments in one table."""

_MOST_SET_ASIDE: Final = 20
"""The most experiments without a score that the default table looks behind."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Experiments that fit in one table."""

    choice: Choice
    cells: Sequence[Cell]
    """The cells of the models in these experiments, under the profile, but for those in pools."""

    done: Mapping[str, int]
    """The number of done runs of each experiment."""

    profile: str
    experiments: Sequence[ExperimentOutline]
    """The experiments that could have been chosen, newest first."""

    is_default: bool
    """Whether the table is the default one: nobody named an experiment."""

    filters: Filters
    pools: Mapping[RowKey, Pool]
    """Those of unchanged experiments; none but for `all` without filters."""

    def leaderboard(self) -> Leaderboard:
        """Return the models, best first. Many models take long: call it outside the event loop.

        It has all models of the table, hidden ones included: ranks are those among all.
        """
        composition, dimension = known_composition(self.profile), self.filters.dimension
        return build_leaderboard(
            self.choice.rows, self.cells, self.profile, composition, dimension, self.pools
        )

    def shows(self, model_id: str) -> bool:
        """Whether the filters let a model's row be seen."""
        return not self.filters.models or model_id in self.filters.models


async def select(
    store: ResultStore,
    experiment: str | None,
    profile: str | None = None,
    filters: Filters = EVERYTHING,
    known: KnownPools | None = None,
) -> Selection:
    """Select what belongs together, one experiment by `find_experiment`, or `all`.

    `filters` choose among the experiments first, and may leave none. A table has one profile and a
    limited size. `profile` replaces the experiments' own one, and
    leaves out those without scores by it. The default table passes over complete experiments in
    which no run has a score, if another one has. `known` keeps the pools of `all` for the next
    call. Raises UnknownExperiment, AmbiguousExperiment, NoScores, and InvalidInput for a model or a
    dimension that there is not.
    """
    candidates = await _candidates(store, experiment)
    return await select_among(store, candidates, experiment, profile, filters, known)


async def default_experiment(store: Experiments) -> ExperimentOutline:
    """Return the newest experiment of the default table, for a page of one experiment alone.

    It reads no cells, and so passes over complete experiments whose runs all failed, where `select`
    passes over those without a score. Raises UnknownExperiment for a store without experiments.
    """
    every = candidates = await store.outlines()
    if not every:
        raise UnknownExperiment("the store has no experiment yet: socratic-bench run CONFIG")
    newest = None
    for _ in range(_MOST_SET_ASIDE):
        shown = (await _choice(store, candidates, None)).rows.values()
        chosen = max((each for row in shown for each in row), key=lambda each: each.created_at)
        newest = newest or chosen
        progress = (await store.progress_of([chosen.experiment_id])).get(chosen.experiment_id)
        has_scores = progress is None or progress.failed < progress.planned
        if has_scores or chosen.pinned_at is not None:
            return chosen
        candidates = [each for each in candidates if each is not chosen]
        if not candidates:
            break
    return newest or every[0]


async def select_among(
    store: ResultStore,
    experiments: Sequence[ExperimentOutline],
    experiment: str | None,
    profile: str | None,
    filters: Filters,
    known: KnownPools | None = None,
) -> Selection:
    """Select what belongs together as `select` does, of these experiments, newest first."""
    filters = filters.by_id(experiments)
    candidates = filters.fitting(experiments)
    chosen = (experiment, profile, filters, known)
    first = selected = await _select(store, candidates, *chosen)
    set_aside: dict[str, LeftOutReason] = {}
    while unscored := _unscored(selected):
        set_aside |= dict.fromkeys(unscored, LeftOutReason.NO_SCORE)
        others = [each for each in candidates if each.experiment_id not in set_aside]
        if not others or len(set_aside) > _MOST_SET_ASIDE:
            return first
        selected = await _select(store, others, *chosen)
    choice = Choice(selected.choice.rows, {**selected.choice.left_out, **set_aside})
    return replace(selected, choice=choice, experiments=candidates)


def _unscored(selected: Selection) -> list[str]:
    """Return the complete experiments without a score that the default table can do without.

    One that alone asked a model under these conditions stays in a table with scores, so that the
    failing model is seen. A pin overrules.
    """
    rows = selected.choice.rows
    chosen = {each.experiment_id: each for row in rows.values() for each in row}
    if not selected.is_default or any(each.pinned_at for each in chosen.values()):
        return []
    scored = {cell.key.experiment_id for cell in selected.cells if cell.scored}

    def is_needed(experiment: ExperimentOutline) -> bool:
        asked = Counter(
            model
            for each in selected.experiments
            if each.conditions_id == experiment.conditions_id
            for model in each.model_ids
        )
        own = [key.model_id for key, row in rows.items() if experiment in row]
        return set(own) != set(experiment.model_ids) or any(asked[model] < 2 for model in own)

    return [
        id_
        for id_, each in chosen.items()
        if each.completed_at and id_ not in scored and not (scored and is_needed(each))
    ]


async def _select(
    store: ResultStore,
    candidates: Sequence[ExperimentOutline],
    experiment: str | None,
    profile: str | None,
    filters: Filters,
    known: KnownPools | None,
) -> Selection:
    choice = await _choice(store, candidates, experiment)
    chosen = list({e.experiment_id: e for row in choice.rows.values() for e in row}.values())
    places = {each.experiment_id: place for place, each in enumerate(candidates)}
    chosen.sort(key=lambda each: places[each.experiment_id])
    experiments = chosen[:MOST_EXPERIMENTS]
    if profile is None:
        profile = chosen[0].profile if chosen else CANONICAL
    else:
        choice, experiments = await _scored(store, choice, experiments, profile)
    reading = known.read if known is not None and experiment == ALL and not filters else read_cells
    cells, done, pools = await reading(store, choice.rows, experiments, profile)
    return Selection(
        within(choice, done),
        cells,
        done,
        profile,
        candidates,
        is_default=experiment is None,
        filters=filters,
        pools=pools,
    )


async def _scored(
    store: ResultStore, choice: Choice, experiments: Sequence[ExperimentOutline], profile: str
) -> tuple[Choice, list[ExperimentOutline]]:
    """Leave out the experiments without scores by a profile."""
    scored = set(await scored_by(store, [each.experiment_id for each in experiments], profile))
    rows = {
        key: kept
        for key, several in choice.rows.items()
        if (kept := tuple(each for each in several if each.experiment_id in scored))
    }
    unscored = (each.experiment_id for each in experiments if each.experiment_id not in scored)
    left_out = {**choice.left_out, **dict.fromkeys(unscored, LeftOutReason.OTHER_PROFILE)}
    return Choice(rows, left_out), [each for each in experiments if each.experiment_id in scored]


async def _choice(
    store: Experiments, candidates: Sequence[ExperimentOutline], experiment: str | None
) -> Choice:
    if experiment is not None:
        return every_choice(candidates)
    running = [each.experiment_id for each in candidates if each.completed_at is None]
    progress = await store.progress_of(running[:MOST_EXPERIMENTS])
    return default_choice(candidates, {id_: each.done for id_, each in progress.items()})


async def _candidates(store: Experiments, experiment: str | None) -> Sequence[ExperimentOutline]:
    if experiment is None or experiment == ALL:
        return await store.outlines()
    try:
        return [ExperimentOutline.of(await find_experiment(store, experiment))]
    except (UnknownExperiment, AmbiguousExperiment) as error:
        raise type(error)(f"experiment: {error}") from None
