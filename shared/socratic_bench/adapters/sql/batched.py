"""The statements of the SQL store that take many rows or keys at once, made for a dialect.

Whoever writes or locks many rows gives them in the order of their keys, so that two transactions
never wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    CompoundSelect,
    Select,
    Table,
    and_,
    delete,
    select,
    true,
    union,
)

from socratic_bench.adapters.sql.dialects import Dialect
from socratic_bench.adapters.sql.schema import (
    CELLS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    LIMITS,
    RESPONSES,
    SCORES,
    SHARES,
)
from socratic_bench.adapters.sql.statements import (
    EXPERIMENT,
    EXPERIMENT_COLUMNS,
    LIST_CELLS,
    OWN_PROFILE,
)

CHUNK = 500
"""How many keys a `SELECT` is given at a time."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """`items` in order, CHUNK at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


class Writes:
    """Statements whose parameters are the `rows` of a dialect, by the names of their columns."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        def insert_new(table: Table) -> Any:
            insert = dialect.insert(table).on_conflict_do_nothing()
            return insert.returning(*table.primary_key)

        self.insert_responses = insert_new(RESPONSES)
        self.insert_scores = insert_new(SCORES)
        self.insert_failures = dialect.insert(FAILURES)

        # An update that changes nothing locks and returns a row that is there already.
        register = dialect.insert(EXPERIMENTS).on_conflict_do_update(
            index_elements=list(EXPERIMENTS.primary_key),
            set_={"revision": EXPERIMENTS.c.revision},
        )
        self.register = register.returning(*EXPERIMENT_COLUMNS)
        """Gives the experiment that is stored, new or not."""

        failed_run = dialect.insert(FAILED_RUNS)
        self.write_failed_runs = failed_run.on_conflict_do_update(
            index_elements=list(FAILED_RUNS.primary_key),
            set_={"retry": failed_run.excluded.retry, "record": failed_run.excluded.record},
            where=FAILED_RUNS.c.retry < failed_run.excluded.retry,
        )

        limit = dialect.insert(LIMITS)
        self.take_limits = limit.on_conflict_do_update(
            index_elements=list(LIMITS.primary_key), set_={"total": limit.excluded.total}
        )
        share = dialect.insert(SHARES)
        self.write_shares = share.on_conflict_do_update(
            index_elements=list(SHARES.primary_key),
            set_={
                "parts": share.excluded.parts,
                "wants": share.excluded.wants,
                "held_until": share.excluded.held_until,
            },
        )

        cell = dialect.insert(CELLS)
        make_cells = cell.on_conflict_do_update(
            index_elements=list(CELLS.primary_key), set_={"revision": CELLS.c.revision}
        )
        self.make_cells = make_cells.returning(
            *CELLS.primary_key, CELLS.c.dimension, CELLS.c.record
        )
        self.write_cells = cell.on_conflict_do_update(
            index_elements=list(CELLS.primary_key),
            set_={
                "responses": cell.excluded.responses,
                "runs_ended": cell.excluded.runs_ended,
                "record": cell.excluded.record,
                "revision": CELLS.c.revision + 1,
            },
        )


class Lookups:
    """Statements about many things that are there, by lists of `run_ids` and so on."""

    def __init__(self, dialect: Dialect) -> None:
        self.responses = (
            select(*RESPONSES.primary_key, RESPONSES.c.record)
            .where(dialect.among(RESPONSES.c.run_id, "run_ids"))
            .order_by(RESPONSES.c.run_id, RESPONSES.c.turn)
        )
        self.response_keys = select(*RESPONSES.primary_key).where(
            dialect.among(RESPONSES.c.run_id, "run_ids")
        )
        self.done_runs = _done_runs(dialect)
        self.runs_to_score = _runs_to_score(dialect)
        self.ended_runs = select(SCORES.c.experiment_id, SCORES.c.run_id, SCORES.c.profile).where(
            dialect.among(SCORES.c.experiment_id, "experiment_ids"),
            dialect.among(SCORES.c.run_id, "run_ids"),
            SCORES.c.last_turn,
        )
        """Runs with a score in their last turn, and under which profile."""

        of_experiments = dialect.among(FAILURES.c.experiment_id, "experiment_ids")
        self.has_failures = select(FAILURES.c.run_id).where(of_experiments).limit(1)
        self.failures = select(
            FAILURES.c.run_id, FAILURES.c.profile, FAILURES.c.record, FAILURES.c.counted
        ).where(of_experiments, dialect.among(FAILURES.c.run_id, "run_ids"))
        self.cells = LIST_CELLS.where(dialect.among(CELLS.c.experiment_id, "experiment_ids"))

        cell_key = list(CELLS.primary_key.columns)
        self.keys_of_cells = partial(dialect.keys, cell_key)
        self.take_cells = (
            select(*CELLS.primary_key, CELLS.c.dimension, CELLS.c.record)
            .where(dialect.keyed(cell_key))
            .order_by(*CELLS.primary_key)
            .with_for_update()
        )
        """Takes `keys_of_cells`, and locks them in their order."""

        self.failed_runs = select(
            FAILED_RUNS.c.run_id, FAILED_RUNS.c.record, FAILED_RUNS.c.retry
        ).where(dialect.among(FAILED_RUNS.c.run_id, "run_ids"))

        self.shares = select(SHARES).where(dialect.among(SHARES.c.scope, "scopes"))
        share_key = list(SHARES.primary_key.columns)
        self.keys_of_shares = partial(dialect.keys, share_key)
        self.delete_shares = delete(SHARES).where(dialect.keyed(share_key))


def _done_runs(dialect: Dialect) -> CompoundSelect[str]:
    return union(
        *(
            select(table.c.run_id).where(
                table.c.experiment_id == EXPERIMENT,
                dialect.among(table.c.run_id, "run_ids"),
                table.c.profile == OWN_PROFILE,
                ended,
            )
            for table, ended in ((SCORES, SCORES.c.last_turn), (FAILURES, true()))
        )
    )


def _runs_to_score(dialect: Dialect) -> Select[str]:
    """Runs with a stored response that has no score yet."""
    score_of_response = and_(
        SCORES.c.experiment_id == EXPERIMENT,
        SCORES.c.run_id == RESPONSES.c.run_id,
        SCORES.c.turn == RESPONSES.c.turn,
        SCORES.c.profile == OWN_PROFILE,
    )
    return (
        select(RESPONSES.c.run_id)
        .outerjoin_from(RESPONSES, SCORES, score_of_response)
        .where(dialect.among(RESPONSES.c.run_id, "run_ids"), SCORES.c.run_id.is_(None))
    )
