"""The selection of a table's experiments and their cells."""

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
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import AmbiguousExperiment, UnknownExperiment
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import known_vectors

ALL = "all"
"""The word that selects all experiments."""

MOST_EXPERIMENTS: Final = 500
"""The most experiments in one table."""

MOST_CELLS: Final = 40_000
"""The most cells of a table, which take 100 MB; beyond, the table leaves out older experiments."""

_EXPERIMENTS_PER_QUERY: Final = 10
"""Experiments whose cells one query reads, uncounted cells included."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Experiments that fit in one table."""

    by_model: Mapping[str, tuple[ExperimentOutline, ...]]
    """The counted experiments of each model, newest first."""

    cells: Sequence[Cell]
    """The cells of the models in these experiments, under the profile."""

    done: Mapping[str, int]
    """The number of done runs of each experiment."""

    profile: str
    left_out: int
    """The number of selected experiments left out because of another profile."""

    too_old: int
    """The number of selected experiments left out because of the limits."""

    def leaderboard(self) -> Leaderboard:
        """Return the models, best first. Many models take long: call it outside the event loop."""
        vectors = known_vectors(self.profile)
        return build_leaderboard(self.by_model, self.cells, self.profile, vectors)


async def select(store: ResultStore, experiment: str | None) -> Selection:
    """Select each model's newest experiment, one experiment by `find_experiment`, or `all`.

    A table has one profile, its newest experiment's, and a limited size. Raises UnknownExperiment,
    AmbiguousExperiment.
    """
    candidates = await _candidates(store, experiment)
    profile = candidates[0].profile if candidates else CANONICAL
    comparable = [each for each in candidates if each.profile == profile]
    wanted = comparable if experiment == ALL else _newest(comparable)
    experiments = wanted[:MOST_EXPERIMENTS]
    choose = every_experiment if experiment == ALL else newest_experiments
    cells, done = await _cells_and_done(store, choose(experiments), experiments, profile)
    shown = [each for each in experiments if each.experiment_id in done]
    return Selection(
        choose(shown),
        cells,
        done,
        profile,
        left_out=len(candidates) - len(comparable),
        too_old=len(wanted) - len(shown),
    )


async def _candidates(store: Experiments, experiment: str | None) -> Sequence[ExperimentOutline]:
    if experiment is None or experiment == ALL:
        return await store.outlines()
    try:
        return [ExperimentOutline.of(await find_experiment(store, experiment))]
    except (UnknownExperiment, AmbiguousExperiment) as error:
        raise type(error)(f"experiment: {error}") from None


def _newest(experiments: Iterable[ExperimentOutline]) -> list[ExperimentOutline]:
    """Return the experiments that are a model's newest; given and returned newest first."""
    seen: set[str] = set()
    newest = []
    for experiment in experiments:
        if not seen.issuperset(experiment.model_ids):
            seen.update(experiment.model_ids)
            newest.append(experiment)
    return newest


async def _cells_and_done(
    store: Aggregates,
    by_model: Mapping[str, tuple[ExperimentOutline, ...]],
    experiments: Sequence[ExperimentOutline],
    profile: str,
) -> tuple[list[Cell], dict[str, int]]:
    """Return the counted cells, and the done runs of each experiment, newest first, up to
    MOST_CELLS.
    """
    counting = {
        (each.experiment_id, model_id) for model_id, several in by_model.items() for each in several
    }
    cells: list[Cell] = []
    done: dict[str, int] = {}
    for start in range(0, len(experiments), _EXPERIMENTS_PER_QUERY):
        if len(cells) >= MOST_CELLS:
            break
        ids = [each.experiment_id for each in experiments[start : start + _EXPERIMENTS_PER_QUERY]]
        done |= dict.fromkeys(ids, 0)
        for cell in await store.cells(ids):
            if cell.key.profile == profile:
                done[cell.key.experiment_id] += cell.runs_ended
                if (cell.key.experiment_id, cell.key.model_id) in counting:
                    cells.append(cell)
    return cells, done
