"""Scores, failures and cells as rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from socratic_bench.adapters.stores.records import Records, Row, record_of
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


def row_of_score(scored: ScoredResponse) -> Row:
    return {
        "experiment_id": scored.run.experiment_id,
        "run_id": scored.run.run_id,
        "turn": scored.turn,
        "profile": scored.profile,
        "last_turn": scored.last_turn,
        "record": record_of(scored),
    }


def row_of_failure(failure: RunFailure, *, counted: bool) -> Row:
    return {
        "experiment_id": failure.run.experiment_id,
        "run_id": failure.run.run_id,
        "profile": failure.profile,
        "counted": counted,
        "record": record_of(failure),
    }


def row_of_cell(cell: Cell) -> Row:
    return {
        **cell.key._asdict(),
        "dimension": cell.dimension,
        "responses": cell.responses,
        "runs_ended": cell.runs_ended,
        "revision": 0,
        "record": cell.to_json(),
    }


def _cell_of_row(row: Sequence[Any]) -> Cell:
    """Read (experiment_id, model_id, scenario_id, turn, profile, dimension, record)."""
    *key, dimension, record = row
    return Cell.from_json(CellKey(*key), dimension, record)


SCORES = Records("scores", 3, lambda row: ScoredResponse.model_validate_json(row[3]))
"""Reads (run_id, turn, profile, record)."""

FAILURES = Records("failures", 2, lambda row: RunFailure.model_validate_json(row[2]))
"""Reads (run_id, profile, record)."""

CELLS = Records("cells", 5, _cell_of_row)
