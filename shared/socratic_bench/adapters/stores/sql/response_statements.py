"""Responses, and failures that runners record: their rows, and the statements about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, bindparam, delete, or_, select

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    record_without_earlier_turns,
)
from socratic_bench.adapters.stores.records import Records, Row, record_of
from socratic_bench.adapters.stores.sql.dialect import Dialect, looked_up
from socratic_bench.adapters.stores.sql.experiment_statements import EXPERIMENT, OWN_PROFILE
from socratic_bench.adapters.stores.sql.schema import (
    CALLS,
    FAILED_RUNS,
    FAILURES,
    RESPONSES,
    SCORES,
)
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import SIDE_PREFIXES, RunFailure
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


FAILED_RUN_RECORDS = Records("failed_runs", 1, _recorded_failure_of_row)

UNFOLDED = Records("failed_runs", 1, _unfolded_of_row)


_IS_SCORED = looked_up(
    select(SCORES.c.turn).where(
        SCORES.c.experiment_id == CALLS.c.experiment_id,
        SCORES.c.run_id == CALLS.c.run_id,
        SCORES.c.turn == CALLS.c.turn,
        SCORES.c.profile == OWN_PROFILE,
    )
)

# Else PostgreSQL may begin with the responses of all experiments, in the hope of an unscored one.
_UNSCORED_CALLS = (
    select(CALLS.c.run_id, CALLS.c.turn)
    .where(
        CALLS.c.experiment_id == EXPERIMENT,
        *(~CALLS.c.run_id.like(f"{prefix}%") for prefix in SIDE_PREFIXES),
        ~_IS_SCORED,
    )
    .cte("unscored")
    .prefix_with("MATERIALIZED", dialect="postgresql")
)

UNSCORED_RESPONSES = (
    select(*RESPONSES.primary_key, RESPONSES.c.record)
    .join_from(
        _UNSCORED_CALLS,
        RESPONSES,
        and_(
            RESPONSES.c.run_id == _UNSCORED_CALLS.c.run_id,
            RESPONSES.c.turn == _UNSCORED_CALLS.c.turn,
        ),
    )
    .limit(bindparam("limit"))
)

_FOLDED = (
    select(FAILURES.c.record)
    .where(
        FAILURES.c.experiment_id == FAILED_RUNS.c.experiment_id,
        FAILURES.c.run_id == FAILED_RUNS.c.run_id,
        FAILURES.c.profile == OWN_PROFILE,
    )
    .scalar_subquery()
)

UNFOLDED_FAILURES = (
    select(FAILED_RUNS.c.run_id, FAILED_RUNS.c.record, _FOLDED.label("folded"))
    .where(FAILED_RUNS.c.experiment_id == EXPERIMENT)
    .where(or_(_FOLDED.is_(None), FAILED_RUNS.c.record != _FOLDED))
    .order_by(FAILED_RUNS.c.run_id)
)
"""The run, the runner's record, and the folded record, if any."""


class ResponseStatements:
    """Statements about many responses or failed runs at once, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        response = dialect.insert(RESPONSES).on_conflict_do_nothing()
        self.insert_responses = dialect.insertion(RESPONSES, response)
        self.responses = (
            select(*RESPONSES.primary_key, RESPONSES.c.record)
            .where(dialect.among(RESPONSES.c.run_id, "run_ids"))
            .order_by(RESPONSES.c.run_id, RESPONSES.c.turn)
        )
        self.response_keys = select(*RESPONSES.primary_key).where(
            dialect.among(RESPONSES.c.run_id, "run_ids")
        )
        self.delete_responses = delete(RESPONSES).where(
            dialect.among(RESPONSES.c.run_id, "run_ids")
        )

        failed_run = dialect.insert(FAILED_RUNS)
        self.write_failed_runs = failed_run.on_conflict_do_update(
            index_elements=list(FAILED_RUNS.primary_key),
            set_={"retry": failed_run.excluded.retry, "record": failed_run.excluded.record},
            where=FAILED_RUNS.c.retry < failed_run.excluded.retry,
        )

        self.failed_runs = select(
            FAILED_RUNS.c.run_id, FAILED_RUNS.c.record, FAILED_RUNS.c.retry
        ).where(dialect.among(FAILED_RUNS.c.run_id, "run_ids"))
