"""Facts as rows, and rows as facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from socratic_bench.domain.cell import Cell, CellKey
from socratic_bench.domain.experiment_state import ExperimentState
from socratic_bench.domain.manifest import Experiment, Manifest
from socratic_bench.domain.money import nanodollars
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import StoreUnreadable
from socratic_bench.ports.store import RecordedFailure, RunningExperiment

log = structlog.get_logger(__name__)

Row: TypeAlias = Mapping[str, Any]
Fact = TypeVar("Fact")

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What comes of a record that is broken, or of a kind that this version does not know."""

_NAMED: Final = 5
"""Rows that are named in one line of the log."""

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
        "planned_at": None,
        "state": experiment.state,
        "submitted": experiment.submitted,
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


def with_fields_of(stored: str, manifest: str) -> str:
    """`manifest` with the fields that only `stored`, of the same experiment, has.

    A newer version wrote those, and goes on with them.
    """
    if stored == manifest:
        return stored
    return to_json(_merged(from_json(stored), from_json(manifest))).decode()


def _merged(stored: Any, new: Any) -> Any:
    if isinstance(stored, dict) and isinstance(new, dict):
        merged = {name: _merged(value, new.get(name, value)) for name, value in stored.items()}
        return merged | {name: value for name, value in new.items() if name not in stored}
    if isinstance(stored, list) and isinstance(new, list) and len(stored) == len(new):
        return [_merged(before, after) for before, after in zip(stored, new, strict=True)]
    return new


@dataclass(frozen=True, slots=True)
class Records(Generic[Fact]):
    """How the rows of a table are read. The columns of the key come first.

    Fields that a newer version added are passed over.
    """

    table: str
    key: int
    """How many columns the key has."""

    read: Callable[[Sequence[Any]], Fact]

    def fact(self, row: Sequence[Any]) -> Fact:
        """The fact in a row. Raises StoreUnreadable, which names the row."""
        try:
            return self.read(row)
        except _UNREADABLE as error:
            raise StoreUnreadable(
                f"{self.table}: this version cannot read the row of {self._name(row)}; upgrade "
                f"Socratic Bench, or repair the row: {_reason(error)}"
            ) from error

    def facts(self, rows: Iterable[Sequence[Any]]) -> list[Fact]:
        """The facts in rows. Those that cannot be read are left out, and named in the log."""
        facts: list[Fact] = []
        left_out: dict[str, str] = {}
        for row in rows:
            try:
                facts.append(self.read(row))
            except _UNREADABLE as error:
                left_out[self._name(row)] = _reason(error)
        if left_out:
            named = dict(islice(left_out.items(), _NAMED))
            log.warning("rows left out", table=self.table, rows=len(left_out), unreadable=named)
        return facts

    def _name(self, row: Sequence[Any]) -> str:
        return " ".join(map(str, row[: self.key]))


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):  # without the input, which may be somebody's text
        first, *more = error.errors(include_url=False, include_input=False)
        also = f" (and {len(more)} more)" if more else ""
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}{also}"
    return f"{type(error).__name__}: {error}"


def _experiment_of_row(row: Sequence[Any]) -> Experiment:
    """From (experiment_id, manifest, occasion, created_at, completed_at, state, submitted)."""
    experiment_id, manifest, occasion, created_at, completed_at, state, submitted = row
    return Experiment(
        experiment_id=experiment_id,
        manifest=Manifest.model_validate_json(manifest, extra="ignore"),
        occasion=occasion,
        created_at=time_at(created_at),
        completed_at=None if completed_at is None else time_at(completed_at),
        state=ExperimentState(state),
        submitted=submitted,
    )


def running_of_row(row: Sequence[Any], model_ids: frozenset[str]) -> RunningExperiment:
    """From (experiment_id, created_at, planned_at, exhausted, state)."""
    experiment_id, created_at, planned_at, exhausted, state = row
    return RunningExperiment(
        experiment_id=experiment_id,
        created_at=time_at(created_at),
        planned_at=None if planned_at is None else time_at(planned_at),
        model_ids=model_ids,
        exhausted=bool(exhausted),
        state=ExperimentState(state),
    )


def _models_of_row(row: Sequence[Any]) -> tuple[str, frozenset[str]]:
    """From (experiment_id, manifest): which experiment, and the ids of its models.

    Of a manifest that is not understood as a whole that much still is.
    """
    experiment_id, manifest = row
    return experiment_id, frozenset(model["id"] for model in from_json(manifest)["models"])


def row_of_response(response: Response) -> Row:
    return {
        "run_id": response.run.run_id,
        "turn": response.turn,
        "record": record_of(response),
    }


def row_of_failed_run(failed: RecordedFailure) -> Row:
    return {
        "run_id": failed.failure.run.run_id,
        "experiment_id": failed.failure.run.experiment_id,
        "retry": failed.retry,
        "record": record_of(failed.failure),
    }


def _recorded_failure_of_row(row: Sequence[Any]) -> RecordedFailure:
    """From (run_id, record, retry)."""
    _, record, retry = row
    return RecordedFailure(RunFailure.model_validate_json(record), retry)


def _unfolded_of_row(row: Sequence[Any]) -> tuple[RunFailure, RunFailure | None]:
    """From (run_id, record, the record that was folded): both failures, the second if any."""
    _, recorded, folded = row
    return (
        RunFailure.model_validate_json(recorded),
        None if folded is None else RunFailure.model_validate_json(folded),
    )


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
    """From (experiment_id, model_id, scenario_id, turn, profile, dimension, record)."""
    *key, dimension, record = row
    return Cell.from_json(CellKey(*key), dimension, record)


EXPERIMENTS = Records("experiments", 1, _experiment_of_row)

MODELS_OF_EXPERIMENTS = Records("experiments", 1, _models_of_row)

RESPONSES = Records("responses", 2, lambda row: Response.model_validate_json(row[2]))
"""From (run_id, turn, record)."""

SCORES = Records("scores", 3, lambda row: ScoredResponse.model_validate_json(row[3]))
"""From (run_id, turn, profile, record)."""

FAILURES = Records("failures", 2, lambda row: RunFailure.model_validate_json(row[2]))
"""From (run_id, profile, record)."""

FAILED_RUNS = Records("failed_runs", 1, _recorded_failure_of_row)

UNFOLDED = Records("failed_runs", 1, _unfolded_of_row)

CELLS = Records("cells", 5, _cell_of_row)

_TROUBLES = TypeAdapter(list[Trouble])

TROUBLES_OF_OWNERS = Records("owners", 1, lambda row: _TROUBLES.validate_json(row[1]))
"""From (owner, troubles)."""


def record_of(fact: BaseModel) -> str:
    """The fact as it stands in the column `record`."""
    return fact.__pydantic_serializer__.to_json(fact).decode()


def record_of_troubles(troubles: Collection[Trouble]) -> str | None:
    """What stands in the column `troubles`; None for none."""
    return _TROUBLES.dump_json(list(troubles)).decode() if troubles else None
