"""The money that experiments spent and reserved, inside one transaction.

The row of an experiment in `spending` is the lock on its budget. A transaction that reserves or
settles locks it first, then responses, then calls, so that no two transactions deadlock, and a
budget does not change between its check and its use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    union,
    update,
)

from socratic_bench.adapters.stores.sql.dialect import Dialect, chunks
from socratic_bench.adapters.stores.sql.experiment_statements import EXPERIMENT
from socratic_bench.adapters.stores.sql.schema import CALLS, HAS_RESERVATION, OWNERS, SPENDING
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.leasing import Account, TurnCalls
from socratic_bench.domain.provider_batch import PREFIX
from socratic_bench.ports.stores.leases import LeaseKey

_NOW: BindParameter[int] = bindparam("now")

_IS_ALIVE = and_(~OWNERS.c.gone, OWNERS.c.seen_at >= bindparam("dead_before"))

_OF_THE_DEAD = CALLS.c.owner.in_(select(OWNERS.c.owner).where(~_IS_ALIVE))
"""Whether a call's owner is dead. Takes `dead_before`."""

_OF_THE_OVERDUE = CALLS.c.owner.in_(
    select(OWNERS.c.owner).where(
        _IS_ALIVE, or_(OWNERS.c.overdue, OWNERS.c.seen_at < bindparam("silent_before"))
    )
)
"""Whether a call's owner is alive and may still have its outcome to store. Takes `dead_before` and
`silent_before`."""

SPENDINGS = select(
    SPENDING.c.experiment_id,
    SPENDING.c.budget,
    SPENDING.c.committed,
    select(func.coalesce(func.sum(CALLS.c.reserved), 0))
    .where(CALLS.c.experiment_id == SPENDING.c.experiment_id, HAS_RESERVATION)
    .where(CALLS.c.leased_until >= _NOW, ~_OF_THE_DEAD)
    .scalar_subquery(),
    SPENDING.c.exhausted,
    SPENDING.c.paid,
    SPENDING.c.reused,
)
"""The experiment, and the fields of its `Spending`. Takes `now` and `dead_before`."""

ADD_COMMITTED = (
    update(SPENDING)
    .where(SPENDING.c.experiment_id == bindparam("at_experiment_id"))
    .values(
        committed=SPENDING.c.committed + bindparam("more"),
        paid=SPENDING.c.paid + bindparam("more_paid"),
        reused=SPENDING.c.reused + bindparam("more_reused"),
    )
)

EXHAUST = (
    update(SPENDING)
    .where(SPENDING.c.experiment_id == bindparam("at_experiment_id"))
    .where(SPENDING.c.budget - SPENDING.c.committed < bindparam("reserve"))
    .values(exhausted=True)
)
"""A missing budget compares as unknown, and is never exhausted."""

IN_HAND = select(OWNERS.c.in_hand).where(_IS_ALIVE)
"""Takes `dead_before`."""

FIND_TROUBLES = select(OWNERS.c.owner, OWNERS.c.troubles).where(
    _IS_ALIVE, OWNERS.c.troubles.is_not(None)
)
"""Takes `dead_before`."""

LIST_OWNERS = union(
    select(OWNERS.c.owner).where(~OWNERS.c.gone),
    select(CALLS.c.owner).where(CALLS.c.leased_until >= _NOW),
)
"""Owners that have not left, or that have a lease but no heartbeat. Takes `now`."""

FORGET_OWNERS = delete(OWNERS).where(OWNERS.c.seen_at < bindparam("forgotten_before"))


CALLS_OF_EXPERIMENT = select(func.coalesce(func.sum(CALLS.c.calls), 0), func.count()).where(
    CALLS.c.experiment_id == EXPERIMENT, CALLS.c.calls > 0
)


WAITING_TURNS = select(
    CALLS.c.run_id, CALLS.c.turn, CALLS.c.lease_id, CALLS.c.owner, CALLS.c.reserved
).where(
    CALLS.c.experiment_id == EXPERIMENT,
    CALLS.c.lease_id != "",
    CALLS.c.owner.startswith(PREFIX, autoescape=True),
)


class LeaseStatements:
    """Statements about many leases or owners at once, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        self.spendings = SPENDINGS.where(dialect.among(SPENDING.c.experiment_id, "experiment_ids"))
        self.open_spending = dialect.insert(SPENDING).on_conflict_do_nothing()
        self.take_spending = (
            select(SPENDING.c.experiment_id, SPENDING.c.budget, SPENDING.c.committed)
            .where(dialect.among(SPENDING.c.experiment_id, "experiment_ids"))
            .order_by(SPENDING.c.experiment_id)
            .with_for_update()
        )

        call = dialect.insert(CALLS)
        is_open = CALLS.c.lease_id != ""
        lapsed = dialect.with_entry(CALLS.c.lapsed, CALLS.c.lease_id, CALLS.c.reserved)
        is_another = or_(
            CALLS.c.lease_id != call.excluded.lease_id, CALLS.c.owner != call.excluded.owner
        )
        is_free = or_(and_(CALLS.c.leased_until < _NOW, ~_OF_THE_OVERDUE), _OF_THE_DEAD)
        lease = call.on_conflict_do_update(
            index_elements=list(CALLS.primary_key),
            set_={
                "calls": CALLS.c.calls + 1,
                "owner": call.excluded.owner,
                "leased_until": call.excluded.leased_until,
                "reserved": call.excluded.reserved,
                "lease_id": call.excluded.lease_id,
                "lapsed": case((is_open, lapsed), else_=CALLS.c.lapsed),
            },
            where=and_(is_another, or_(CALLS.c.owner == call.excluded.owner, is_free)),
        )
        self.lease = dialect.insertion(CALLS, lease)
        """Also takes the times of judgement. Returns the new leases."""

        call_key = list(CALLS.primary_key.columns)
        self.keys_of_calls = partial(dialect.keys, call_key)
        self.find_leases = select(
            *CALLS.primary_key,
            CALLS.c.owner,
            CALLS.c.lease_id,
            or_(CALLS.c.owner == bindparam("claimant"), is_free),
        ).where(dialect.keyed(call_key))
        """Takes `keys_of_calls`, `claimant` and the times of judgement. Returns whether the
        claimant may take each."""

        self.take_calls = (
            select(CALLS)
            .where(dialect.keyed(call_key))
            .order_by(*CALLS.primary_key)
            .with_for_update()
        )
        """Takes `keys_of_calls`, and locks them in their order."""

        self.make_calls = call.on_conflict_do_nothing()
        changing = [column for column in CALLS.columns if not column.primary_key]
        self.write_calls = call.on_conflict_do_update(
            index_elements=list(CALLS.primary_key),
            set_={column.name: call.excluded[column.name] for column in changing},
        )

        owner = dialect.insert(OWNERS)
        self.write_owners = owner.on_conflict_do_update(
            index_elements=list(OWNERS.primary_key),
            set_={
                "beat": OWNERS.c.beat + 1,
                "seen_at": owner.excluded.seen_at,
                "gone": owner.excluded.gone,
                "in_hand": owner.excluded.in_hand,
                "troubles": owner.excluded.troubles,
                "overdue": owner.excluded.overdue,
            },
        )


class CallKey(NamedTuple):
    """The key of the calls for a turn."""

    experiment_id: str
    run_id: str
    turn: int


class Ending(NamedTuple):
    """The end of a lease."""

    cost: int | None
    """The amount that replaces the reservation; None: the reservation stays committed."""

    begun: bool = True
    """Whether its call began, and so counts."""


class Ledger:
    """The committed money, for one writing transaction."""

    def __init__(self, transaction: Transaction, statements: LeaseStatements) -> None:
        self._transaction = transaction
        self._statements = statements
        self._accounts: dict[str, Account] = {}
        self._more: Counter[str] = Counter()
        self._paid: Counter[str] = Counter()
        self._reused: Counter[str] = Counter()

    async def open(self, experiment_ids: Collection[str]) -> None:
        """Make missing accounts, for responses that unregistered experiments adopt."""
        if experiment_ids:
            nothing = {"budget": None, "committed": 0, "exhausted": False, "paid": 0, "reused": 0}
            rows = [{"experiment_id": each, **nothing} for each in sorted(experiment_ids)]
            await self._transaction.execute(
                self._statements.open_spending, self._statements.rows(rows)
            )

    async def lock(self, experiment_ids: Collection[str]) -> dict[str, int | None]:
        """Lock the budgets of these experiments; returns the rest of each.

        The rest is None without a budget, and negative after the budget was lowered.
        """
        left: dict[str, int | None] = {}
        for chunk in chunks(sorted(experiment_ids)):
            rows = await self._transaction.execute(
                self._statements.take_spending, {"experiment_ids": chunk}
            )
            for experiment_id, budget, committed in rows:
                account = self._accounts[experiment_id] = Account(budget, committed)
                left[experiment_id] = account.left
        return left

    def add(self, experiment_id: str, nanodollars: int) -> None:
        """Add to the committed money of a locked experiment."""
        self._more[experiment_id] += nanodollars

    def pay(self, experiment_id: str, cost: int, *, reserved: int = 0, reused: int = 0) -> None:
        """Replace a reservation of a locked experiment by its known cost; add a reused one."""
        self.add(experiment_id, cost - reserved)
        self._paid[experiment_id] += cost
        self._reused[experiment_id] += reused

    async def settle(self, endings: Mapping[LeaseKey, Ending]) -> set[LeaseKey]:
        """End these leases; returns those that were open.

        The caller has locked the experiments of leases whose cost differs from their reservation.
        """
        settled: set[LeaseKey] = set()
        changed: dict[CallKey, TurnCalls] = {}
        calls = await self._take_calls({call_of(lease) for lease in endings})
        for lease, (cost, begun) in endings.items():
            turn = calls.get(call_of(lease), TurnCalls())
            if (reserved := turn.reserved_under(lease.lease_id)) is None:
                continue
            turn.end(lease.lease_id, begun=begun)
            settled.add(lease)
            changed[call_of(lease)] = turn
            if cost is not None:
                self.pay(lease.experiment_id, cost, reserved=reserved)
        if changed:
            rows = [row_of_calls(key, changed[key]) for key in sorted(changed)]
            await self._transaction.execute(
                self._statements.write_calls, self._statements.rows(rows)
            )
        return settled

    async def know(self, keys: Collection[CallKey]) -> None:
        """Make missing rows for these turns, which were answered without a lease."""
        if keys:
            rows = [row_of_calls(key, TurnCalls()) for key in sorted(keys)]
            await self._transaction.execute(
                self._statements.make_calls, self._statements.rows(rows)
            )

    async def write(self) -> None:
        """Write the changes of committed money."""
        for experiment_id, nanodollars in sorted(self._more.items()):
            account = self._accounts.get(experiment_id) or Account()
            account.commit(nanodollars, experiment_id)
            more = (nanodollars, self._paid[experiment_id], self._reused[experiment_id])
            if any(more):
                names = ("more", "more_paid", "more_reused")
                parameters = {
                    "at_experiment_id": experiment_id,
                    **dict(zip(names, more, strict=True)),
                }
                await self._transaction.execute(ADD_COMMITTED, parameters)

    async def _take_calls(self, keys: Collection[CallKey]) -> dict[CallKey, TurnCalls]:
        calls: dict[CallKey, TurnCalls] = {}
        for chunk in chunks(sorted(keys)):
            parameters = self._statements.keys_of_calls(chunk)
            for row in await self._transaction.execute(self._statements.take_calls, parameters):
                *key, number, owner, until, reserved, lease_id, lapsed = row
                calls[CallKey._make(key)] = TurnCalls(
                    number, owner, until, reserved, lease_id, json.loads(lapsed or "{}")
                )
        return calls


def call_of(lease: LeaseKey) -> CallKey:
    """Return the turn of a lease."""
    return CallKey(lease.experiment_id, lease.run_id, lease.turn)


def row_of_calls(key: CallKey, calls: TurnCalls) -> Mapping[str, Any]:
    return {
        **key._asdict(),
        "calls": calls.calls,
        "owner": calls.owner,
        "leased_until": calls.until,
        "reserved": calls.reserved,
        "lease_id": calls.lease_id,
        "lapsed": json.dumps(calls.lapsed) if calls.lapsed else None,
    }
