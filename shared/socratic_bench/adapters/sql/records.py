"""Facts as rows, and rows as facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from pydantic import BaseModel

from socratic_bench.domain.cell import Cell, CellKey
from socratic_bench.domain.manifest import Experiment, Manifest
from socratic_bench.domain.money import nanodollars
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse

Row: TypeAlias = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970-01-01 UTC, exactly."""
    return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND


def time_at(microseconds: int) -> datetime:
    """The time that many microseconds after 1970-01-01 UTC, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def row_of_experiment(experiment: Experiment) -> Row:
    completed_at = experiment.completed_at
    return {
        "experiment_id": experiment.experiment_id,
        "manifest": record_of(experiment.manifest),
        "occasion": experiment.occasion,
        "profile": experiment.manifest.profile,
        "planned_runs": experiment.manifest.planned_runs,
        "created_at": microseconds(experiment.created_at),
        "completed_at": None if completed_at is None else microseconds(completed_at),
        "revision": 1,
    }


def row_of_spending(experiment: Experiment) -> Row:
    """What an experiment may cost; so far it cost nothing."""
    budget = experiment.manifest.budget
    return {
        "experiment_id": experiment.experiment_id,
        "budget": None if budget is None else nanodollars(budget),
        "committed": 0,
        "exhausted": False,
    }


def experiment_of_row(row: Sequence[Any]) -> Experiment:
    """From (manifest, occasion, created_at, completed_at)."""
    manifest, occasion, created_at, completed_at = row
    return Experiment(
        manifest=Manifest.model_validate_json(manifest),
        occasion=occasion,
        created_at=time_at(created_at),
        completed_at=None if completed_at is None else time_at(completed_at),
    )


def row_of_response(response: Response) -> Row:
    return {
        "run_id": response.run.run_id,
        "turn": response.turn,
        "record": record_of(response),
    }


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


def cell_of_row(row: Sequence[Any]) -> Cell:
    """From (experiment_id, model_id, scenario_id, turn, profile, dimension, record)."""
    *key, dimension, record = row
    return Cell.from_json(CellKey(*key), dimension, record)


def record_of(fact: BaseModel) -> str:
    """The fact as it stands in the column `record`."""
    return fact.__pydantic_serializer__.to_json(fact).decode()
