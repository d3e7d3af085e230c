"""Which experiments stand in a table, and their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.leaderboard import (
    Leaderboard,
    build_leaderboard,
    every_experiment,
    newest_experiments,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import AmbiguousExperiment, UnknownExperiment
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import known_vectors

EVERY = "all"
"""Selects every experiment at once instead of one."""

MOST_TOGETHER: Final = 500
"""Experiments in one table at most."""

MOST_CELLS: Final = 40_000
"""Cells of a table: once there are so many, older experiments are left out. They take 100 MB."""

_READ_TOGETHER: Final = 10
"""Experiments whose cells are read at a time, those that do not count too."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Experiments that can stand in one table."""

    by_model: Mapping[str, tuple[Experiment, ...]]
    """For each model the experiments that count, newest first."""

    cells: Sequence[Cell]
    """Those of the models in these experiments, under the profile."""

    done: Mapping[str, int]
    """How many runs of each experiment are done."""

    profile: str
    left_out: int
    """Experiments that were meant too, but were scored by another profile."""

    too_old: int
    """Experiments that were meant too, but were too many."""

    def leaderboard(self) -> Leaderboard:
        """Their models, best first. Takes a while for many: not for the event loop."""
        vectors = known_vectors(self.profile)
        return build_leaderboard(self.by_model, self.cells, self.profile, vectors)


async def select(store: ResultStore, experiment: str | None) -> Selection:
    """Each model's newest experiment, one experiment as `find_experiment` finds it, or `all`.

    A table has one profile: that of the newest experiment in it. There are bounds to how many
    experiments it has. Raises UnknownExperiment, AmbiguousExperiment.
    """
    candidates = await _candidates(store, experiment)
    profile = candidates[0].profile if candidates else CANONICAL
    comparable = [each for each in candidates if each.profile == profile]
    wanted = comparable if experiment == EVERY else _newest(comparable)
    ids = [each.experiment_id for each in wanted[:MOST_TOGETHER]]
    experiments = await store.experiments(ids)
    choose = every_experiment if experiment == EVERY else newest_experiments
    cells, done = await _cells_and_done(store, choose(experiments), experiments, profile)
    shown = [each for each in experiments if each.experiment_id in done]
    return Selection(
        choose(shown),
        cells,
        done,
        profile,
        left_out=len(candidates) - len(comparable),
        too_old=len(wanted) - len(ids) + len(experiments) - len(shown),
    )


async def _candidates(store: Experiments, experiment: str | None) -> Sequence[ExperimentOutline]:
    if experiment is None or experiment == EVERY:
        return await store.outlines()
    try:
        return [ExperimentOutline.of(await find_experiment(store, experiment))]
    except (UnknownExperiment, AmbiguousExperiment) as error:
        raise type(error)(f"experiment: {error}") from None


def _newest(experiments: Iterable[ExperimentOutline]) -> list[ExperimentOutline]:
    """Those that are any model's newest; given and returned newest first."""
    seen: set[str] = set()
    newest = []
    for experiment in experiments:
        if not seen.issuperset(experiment.model_ids):
            seen.update(experiment.model_ids)
            newest.append(experiment)
    return newest


async def _cells_and_done(
    store: Aggregates,
    by_model: Mapping[str, tuple[Experiment, ...]],
    experiments: Sequence[Experiment],
    profile: str,
) -> tuple[list[Cell], dict[str, int]]:
    """The cells that count, and how many runs of each experiment are done: of the newest first,
    until there are MOST_CELLS.
    """
    counting = {
        (each.experiment_id, model_id) for model_id, several in by_model.items() for each in several
    }
    cells: list[Cell] = []
    done: dict[str, int] = {}
    for start in range(0, len(experiments), _READ_TOGETHER):
        if len(cells) >= MOST_CELLS:
            break
        ids = [each.experiment_id for each in experiments[start : start + _READ_TOGETHER]]
        done |= dict.fromkeys(ids, 0)
        for cell in await store.cells(ids):
            if cell.key.profile == profile:
                done[cell.key.experiment_id] += cell.runs_ended
                if (cell.key.experiment_id, cell.key.model_id) in counting:
                    cells.append(cell)
    return cells, done
