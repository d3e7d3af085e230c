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
    BindParameter,
    CompoundSelect,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    or_,
    select,
    true,
    union,
    update,
)

from socratic_bench.adapters.sql.dialects import Dialect
from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    EXPERIMENTS,
    FAILURES,
    LIMITS,
    RESPONSES,
    SCORES,
    SHARES,
    SPENDING,
)
from socratic_bench.adapters.sql.statements import LIST_CELLS

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

        experiment = dialect.insert(EXPERIMENTS)
        self.register = experiment.on_conflict_do_update(
            index_elements=list(EXPERIMENTS.primary_key),
            set_={
                "manifest": experiment.excluded.manifest,
                "revision": EXPERIMENTS.c.revision + 1,
            },
            where=EXPERIMENTS.c.manifest != experiment.excluded.manifest,
        )

        spending = dialect.insert(SPENDING)
        self.set_budget = spending.on_conflict_do_update(
            index_elements=list(SPENDING.primary_key),
            set_={
                "budget": spending.excluded.budget,
                # A budget that is not there compares as unknown, and is never exhausted.
                "exhausted": and_(
                    SPENDING.c.exhausted,
                    spending.excluded.budget.is_not(None),
                    spending.excluded.budget <= SPENDING.c.budget,
                ),
            },
        )

        call = dialect.insert(CALLS)
        lease = call.on_conflict_do_update(
            index_elements=list(CALLS.primary_key),
            set_={
                "calls": CALLS.c.calls + 1,
                "owner": call.excluded.owner,
                "leased_until": call.excluded.leased_until,
                "reserved": call.excluded.reserved,
            },
            where=or_(
                CALLS.c.owner == call.excluded.owner, CALLS.c.leased_until < bindparam("now")
            ),
        )
        self.lease = lease.returning(CALLS.c.run_id, CALLS.c.turn)
        """Takes `now` besides."""

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

        # An update that changes nothing locks and returns a row that is there already.
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
            select(RESPONSES.c.record)
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
        self.failures = select(FAILURES.c.counted, FAILURES.c.record).where(
            of_experiments, dialect.among(FAILURES.c.run_id, "run_ids")
        )
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

        self.take_spending = (
            select(SPENDING.c.experiment_id, SPENDING.c.budget, SPENDING.c.committed)
            .where(dialect.among(SPENDING.c.experiment_id, "experiment_ids"))
            .order_by(SPENDING.c.experiment_id)
            .with_for_update()
        )
        call_key = list(CALLS.primary_key.columns)
        self.keys_of_calls = partial(dialect.keys, call_key)
        self.held_calls = select(CALLS.c.run_id, CALLS.c.turn).where(
            dialect.keyed(call_key),
            CALLS.c.owner != bindparam("owner"),
            CALLS.c.leased_until >= bindparam("now"),
        )
        """Takes `keys_of_calls`, `owner` and `now`: the calls that another holds."""

        self.take_reservations = (
            select(*CALLS.primary_key, CALLS.c.owner, CALLS.c.reserved)
            .where(dialect.keyed(call_key))
            .order_by(*CALLS.primary_key)
            .with_for_update()
        )
        """Takes `keys_of_calls`, and locks them in their order."""

        self.end_reservations = update(CALLS).where(dialect.keyed(call_key)).values(reserved=0)

        self.give_back_calls = (
            update(CALLS)
            .where(dialect.keyed(call_key), CALLS.c.owner == bindparam("holder"))
            .where(CALLS.c.leased_until > 0)
            .values(calls=CALLS.c.calls - 1, leased_until=0)
        )
        """Takes `keys_of_calls` and `holder`."""

        self.shares = select(SHARES).where(dialect.among(SHARES.c.scope, "scopes"))
        share_key = list(SHARES.primary_key.columns)
        self.keys_of_shares = partial(dialect.keys, share_key)
        self.delete_shares = delete(SHARES).where(dialect.keyed(share_key))


def _done_runs(dialect: Dialect) -> CompoundSelect[str]:
    return union(
        *(
            select(table.c.run_id).where(
                table.c.experiment_id == _EXPERIMENT,
                dialect.among(table.c.run_id, "run_ids"),
                table.c.profile == _OWN_PROFILE,
                ended,
            )
            for table, ended in ((SCORES, SCORES.c.last_turn), (FAILURES, true()))
        )
    )


def _runs_to_score(dialect: Dialect) -> Select[str]:
    """Runs with a stored response that has no score yet."""
    score_of_response = and_(
        SCORES.c.experiment_id == _EXPERIMENT,
        SCORES.c.run_id == RESPONSES.c.run_id,
        SCORES.c.turn == RESPONSES.c.turn,
        SCORES.c.profile == _OWN_PROFILE,
    )
    return (
        select(RESPONSES.c.run_id)
        .outerjoin_from(RESPONSES, SCORES, score_of_response)
        .where(dialect.among(RESPONSES.c.run_id, "run_ids"), SCORES.c.run_id.is_(None))
    )


_EXPERIMENT: BindParameter[str] = bindparam("experiment_id")

_OWN_PROFILE = (
    select(EXPERIMENTS.c.profile)
    .where(EXPERIMENTS.c.experiment_id == _EXPERIMENT)
    .scalar_subquery()
)
