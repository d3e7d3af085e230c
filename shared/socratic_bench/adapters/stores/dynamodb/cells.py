"""The progress of an experiment, by its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.items import (
    VERSION,
    Item,
    at,
    joined,
    packed,
    unpacked,
)
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.records import Records, record_of
from socratic_bench.domain.aggregates.cell import Cell, CellKey, StoredFailure, millionths
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.experiments import Progress


@dataclass(slots=True)
class StoredCell:
    """A cell as the store has it, or an empty one."""

    cell: Cell
    failed: int = 0
    """The failures that the cell counts."""

    failures: int = 0
    """In the cell of turn 1: the failures that are stored of its model, scenario and profile."""

    version: int = 0
    """The version that was read; 0: the store has no such cell."""

    def item(self) -> Item:
        """The item without its version."""
        cell = self.cell
        key = cell.key
        return at(
            keys.cell(key),
            {
                "model": key.model_id,
                "scenario": key.scenario_id,
                "turn": key.turn,
                "profile": key.profile,
                "dimension": cell.dimension,
                "ended": cell.runs_ended,
                "failed": self.failed or None,
                "failures": self.failures or None,
                "record": packed(cell.to_json()),
            },
        )


def key_of_cell(experiment_id: str, item: Item) -> CellKey:
    return CellKey(
        experiment_id,
        str(item["model"]),
        str(item["scenario"]),
        int(item["turn"]),
        str(item["profile"]),
    )


def row_of_cell(experiment_id: str, item: Item) -> Sequence[Any]:
    key = key_of_cell(experiment_id, item)
    return (*key, str(item["dimension"]), unpacked(item["record"]))


def _cell(row: Sequence[Any]) -> Cell:
    """Read (experiment_id, model_id, scenario_id, turn, profile, dimension, record)."""
    *key, dimension, record = row
    return Cell.from_json(CellKey(*key), dimension, record)


def stored_cell(experiment_id: str, item: Item) -> StoredCell:
    """Raises StoreUnreadable for a cell that this version cannot read."""
    return StoredCell(
        cell=CELLS.fact(row_of_cell(experiment_id, item)),
        failed=int(item.get("failed", 0)),
        failures=int(item.get("failures", 0)),
        version=int(item[VERSION]),
    )


def item_of_score(scored: ScoredResponse) -> Item:
    """Return the item of a score.

    `ranked` and `overall` are for an index that lists the responses of a model by their scores.
    """
    run = scored.run
    overall = scored.overall
    return at(
        keys.score(run.experiment_id, run.run_id, scored.profile, scored.turn),
        {
            "run": run.run_id,
            "turn": scored.turn,
            "profile": scored.profile,
            "is_last": scored.last_turn or None,
            "ranked": None if overall is None else joined(run.experiment_id, run.model_id),
            "overall": None if overall is None else millionths(overall),
            "record": packed(record_of(scored)),
        },
    )


def row_of_score(item: Item) -> Sequence[Any]:
    """Return (run_id, turn, profile, record)."""
    return str(item["run"]), int(item["turn"]), str(item["profile"]), unpacked(item["record"])


def item_of_failure(stored: StoredFailure) -> Item:
    """The item without its version."""
    failure = stored.failure
    return at(
        keys.folded_failure(failure.run.experiment_id, failure.run.run_id, failure.profile),
        {
            "run": failure.run.run_id,
            "turn": failure.turn,
            "profile": failure.profile,
            "counted": stored.counted,
            "record": packed(record_of(failure)),
        },
    )


def stored_failure(item: Item) -> StoredFailure:
    return StoredFailure(FAILURES.fact(row_of_failure(item)), bool(item["counted"]))


def row_of_failure(item: Item) -> Sequence[Any]:
    """Return (run_id, profile, record)."""
    return str(item["run"]), str(item["profile"]), unpacked(item["record"])


CELLS = Records("cells", 5, _cell)

SCORES = Records("scores", 3, lambda row: ScoredResponse.model_validate_json(row[3]))

FAILURES = Records("failures", 2, lambda row: RunFailure.model_validate_json(row[2]))


async def progress_of_cells(
    table: DynamoTable, experiment_id: str, profile: str, planned_runs: int
) -> Progress:
    """Sum up the ended and the failed runs under a profile."""
    items = await table.query(keys.cells(experiment_id))
    own = [item for item in items if item["profile"] == profile]
    return Progress(
        planned_runs,
        sum(int(item["ended"]) for item in own),
        sum(int(item.get("failed", 0)) for item in own),
    )
