"""The statements about responses, and failures that runners record."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, or_, select

from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.experiments.statements import EXPERIMENT, OWN_PROFILE
from socratic_bench.adapters.stores.sql.lookups import looked_up
from socratic_bench.adapters.stores.sql.schema import (
    CALLS,
    FAILED_RUNS,
    FAILURES,
    RESPONSES,
    SCORES,
)
from socratic_bench.domain.grading import GRADINGS_LIKE

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
    .where(CALLS.c.experiment_id == EXPERIMENT, ~CALLS.c.run_id.like(GRADINGS_LIKE), ~_IS_SCORED)
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
