"""The check that every stored cell is the fold of its stored rows, and every row of the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from socratic_bench.domain.aggregates.cell import Cell, CellKey, fold, merge_into
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreUnavailable, UnknownExperiment
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.results.experiment_choice import ResultStore

_ATTEMPTS = 3

MOST_OUTSIDE = 1000
"""Rows outside a plan that are kept to be told."""


@dataclass(frozen=True, slots=True)
class WrongCell:
    """A cell that is not the fold of its rows."""

    cell: CellKey
    figure: str
    """The differing figure: `dimension`, `runs_ended`, `latency_ms`, `vectors.<name>` …"""

    stored: Any
    """The value in the cell; None without one."""

    recomputed: Any
    """The value of its rows; None without one."""

    def __str__(self) -> str:
        key = self.cell
        return (
            f"{key.experiment_id} · {key.model_id} · {key.scenario_id} · turn {key.turn} · "
            f"{key.profile}: {self.figure} is {json.dumps(self.stored)}, "
            f"its rows give {json.dumps(self.recomputed)}"
        )


@dataclass(frozen=True, slots=True)
class Outside:
    """A stored score or failure that the plan does not hold."""

    run: Run
    turn: int
    profile: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.run.experiment_id} · {self.run.model_id} · {self.run.scenario_id} · "
            f"{self.run.run_id} · turn {self.turn} · {self.profile}: {self.reason}"
        )


Finding = WrongCell | Outside


async def verify(store: ResultStore, experiment_id: str) -> list[Finding]:
    """Recompute every cell of an experiment from its rows, and compare the rows with the plan.

    Returns the cells that differ and the first rows outside the plan; empty if all is well.

    The fold reads rows batch by batch: memory grows with cells and failures, not with rows. Raises
    UnknownExperiment, and StoreUnavailable if writes to the store prevent a consistent read.
    """
    experiment = await store.experiment(experiment_id)
    if experiment is None:
        raise UnknownExperiment(f"there is no experiment {experiment_id!r} in this store")
    for _ in range(_ATTEMPTS):
        before = await store.revision()
        findings = await _findings(store, experiment)
        if not findings or await store.revision() == before:
            return findings
    raise StoreUnavailable(
        f"experiment {experiment_id} cannot be verified while the store is written to; "
        "try again when no experiment is running"
    )


async def _findings(store: Aggregates, experiment: Experiment) -> list[Finding]:
    stored = {cell.key: cell for cell in await store.cells([experiment.experiment_id])}
    outside: list[Finding] = []
    recomputed = await _recompute(store, experiment, outside)
    differences = [
        difference
        for key in sorted(stored.keys() | recomputed.keys())
        for difference in _compare(key, stored.get(key), recomputed.get(key))
    ]
    return [*outside, *differences]


def _look(
    experiment: Experiment, facts: Iterable[ScoredResponse | RunFailure], outside: list[Finding]
) -> None:
    """Add the facts that the plan does not hold, as long as they are few."""
    for fact in facts:
        reason = experiment.outside_plan(fact.run, fact.turn)
        if reason is not None and len(outside) < MOST_OUTSIDE:
            outside.append(Outside(fact.run, fact.turn, fact.profile, reason))


async def _recompute(
    store: Aggregates, experiment: Experiment, outside: list[Finding]
) -> Mapping[CellKey, Cell]:
    experiment_id = experiment.experiment_id
    failures = [each async for page in store.failure_rows(experiment_id) for each in page]
    _look(experiment, failures, outside)
    failed = {(failure.run.run_id, failure.profile) for failure in failures}
    ended_after_all: set[tuple[str, str]] = set()
    cells: dict[CellKey, Cell] = {}
    async for scores in store.score_rows(experiment_id):
        _look(experiment, scores, outside)
        merge_into(cells, fold(scores, ()))
        if failed:
            ended_after_all |= failed & {
                (scored.run.run_id, scored.profile) for scored in scores if scored.last_turn
            }
    counting = [
        failure
        for failure in failures
        if (failure.run.run_id, failure.profile) not in ended_after_all
    ]
    merge_into(cells, fold((), counting))
    return cells


def _compare(key: CellKey, stored: Cell | None, recomputed: Cell | None) -> list[WrongCell]:
    """Return the differences; an empty cell equals a missing one."""
    left, right = _figures(stored), _figures(recomputed)
    if stored is not None and recomputed is not None:
        left["dimension"], right["dimension"] = stored.dimension, recomputed.dimension
    return [
        WrongCell(key, figure, left.get(figure), right.get(figure))
        for figure in sorted(left.keys() | right.keys())
        if left.get(figure) != right.get(figure)
    ]


def _figures(cell: Cell | None) -> dict[str, Any]:
    """Return the cell's nonzero figures, flat, by name."""
    if cell is None:
        return {}
    contents = cell.contents()
    flat: dict[str, Any] = {}
    for figure, value in contents.items():
        if isinstance(value, dict):
            flat |= {f"{figure}.{name}": inner for name, inner in value.items()}
        else:
            flat[figure] = value
    return {figure: value for figure, value in flat.items() if value not in (0, [0, 0, 0])}
