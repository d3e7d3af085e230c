"""Responses, and failures that runners record, as rows and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    record_without_earlier_turns,
)
from socratic_bench.adapters.stores.records import Records, Row, record_of
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.responses import RecordedFailure


def row_of_response(response: Response, known: KnownConversations) -> Row:
    """Without the earlier turns where each has a row already."""
    digest = known.digest_before(response)
    return {
        "run_id": response.run.run_id,
        "turn": response.turn,
        "record": (
            record_of(response)
            if digest is None
            else record_without_earlier_turns(response, digest)
        ),
    }


def records_of_responses(reader: ResponseReader) -> Records[Response]:
    """From (run_id, turn, record); `reader` is for the rows of one call."""
    return Records("responses", 2, reader.read)


def row_of_failed_run(failed: RecordedFailure) -> Row:
    return {
        "run_id": failed.failure.run.run_id,
        "experiment_id": failed.failure.run.experiment_id,
        "retry": failed.retry,
        "record": record_of(failed.failure),
    }


def _recorded_failure_of_row(row: Sequence[Any]) -> RecordedFailure:
    """Read (run_id, record, retry)."""
    _, record, retry = row
    return RecordedFailure(RunFailure.model_validate_json(record), retry)


def _unfolded_of_row(row: Sequence[Any]) -> tuple[RunFailure, RunFailure | None]:
    """Read (run_id, record, folded record): both failures, None for a missing one."""
    _, recorded, folded = row
    return (
        RunFailure.model_validate_json(recorded),
        None if folded is None else RunFailure.model_validate_json(folded),
    )


FAILED_RUNS = Records("failed_runs", 1, _recorded_failure_of_row)

UNFOLDED = Records("failed_runs", 1, _unfolded_of_row)
