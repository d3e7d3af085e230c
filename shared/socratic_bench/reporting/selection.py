"""Which experiments a table is made of, and their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from socratic_bench.domain.cell import Cell
from socratic_bench.domain.leaderboard import (
    Leaderboard,
    build_leaderboard,
    every_experiment,
    newest_experiments,
)
from socratic_bench.domain.manifest import Experiment
from socratic_bench.errors import UnknownExperiment
from socratic_bench.ports.store import Store
from socratic_bench.scoring.profiles import CANONICAL

EVERY = "all"
"""Selects every experiment at once instead of one by its id."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Experiments that can stand in one table."""

    by_model: Mapping[str, tuple[Experiment, ...]]
    """For each model the experiments that count, newest first."""

    cells: Sequence[Cell]
    profile: str
    left_out: int
    """Experiments that were meant too, but were scored by another profile."""

    def leaderboard(self) -> Leaderboard:
        """Their models, best first. Takes a while for many: not for the event loop."""
        return build_leaderboard(self.by_model, self.cells, self.profile)


async def select(store: Store, experiment: str | None) -> Selection:
    """Each model's newest experiment, one experiment by its id, or `all`.

    A table has one profile: that of the newest experiment in it. Raises UnknownExperiment for an id
    the store does not have.
    """
    candidates = await _candidates(store, experiment)
    profile = candidates[0].manifest.profile if candidates else CANONICAL
    comparable = [each for each in candidates if each.manifest.profile == profile]
    choose = every_experiment if experiment == EVERY else newest_experiments
    by_model = choose(comparable)
    chosen = {each.experiment_id for several in by_model.values() for each in several}
    cells = await store.cells(chosen) if chosen else ()
    return Selection(by_model, cells, profile, len(candidates) - len(comparable))


async def _candidates(store: Store, experiment: str | None) -> Sequence[Experiment]:
    if experiment is None or experiment == EVERY:
        return await store.experiments()
    found = await store.experiment(experiment)
    if found is None:
        raise UnknownExperiment(
            f"experiment: there is no {experiment!r} in this store; "
            f"name one that it has, or {EVERY!r}"
        )
    return [found]
