"""The selection of a table's experiments and their cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.leaderboard import (
    Leaderboard,
    Pool,
    RowKey,
    build_leaderboard,
)
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import AmbiguousExperiment, UnknownExperiment
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.filters import EVERYTHING, Filters
from socratic_bench.reporting.known.pools import KnownPools, read_cells
from socratic_bench.reporting.leaderboard.choice import (
    Choice,
    LeftOutReason,
    default_choice,
    every_choice,
    within,
)
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import known_composition

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
    candidates = filters.fitting(await _candidates(store, experiment))
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
    store: Aggregates, choice: Choice, experiments: Sequence[ExperimentOutline], profile: str
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
