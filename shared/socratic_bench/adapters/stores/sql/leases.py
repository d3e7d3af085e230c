"""The role `Leases` of the SQL store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.records import Records
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.experiment_statements import stopped_among
from socratic_bench.adapters.stores.sql.ledger import (
    CALLS_OF_EXPERIMENT,
    EXHAUST,
    FIND_TROUBLES,
    FORGET_OWNERS,
    IN_HAND,
    LIST_OWNERS,
    WAITING_TURNS,
    CallKey,
    Ending,
    Ledger,
    call_of,
    row_of_calls,
)
from socratic_bench.adapters.stores.sql.role import SqlRole, Statements
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.leasing import (
    DEAD_AFTER_SECONDS,
    FORGOTTEN_AFTER,
    SECOND,
    LeaseAnswer,
    TurnCalls,
    answers_in_order,
)
from socratic_bench.domain.provider_batch import is_batch
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    LeaseKey,
    ModelInHand,
    Spending,
    WaitingTurn,
)

Claims = Mapping[CallKey, Lease]
"""One claim of each turn, in the order of serving."""


class Held(NamedTuple):
    """Claimed turns that an owner holds."""

    by_others: set[CallKey]
    already: set[CallKey]
    """The turns that the claimant holds under the claimed lease."""


class Leasing:
    """The claims of one owner, for one writing transaction."""

    def __init__(
        self,
        transaction: Transaction,
        statements: Statements,
        owner: str,
        now: int,
        *,
        may_judge: bool,
    ) -> None:
        """`now` is the time of the store's clock, in microseconds."""
        self._transaction = transaction
        self._statements = statements
        self._owner = owner
        self._now = now
        self._times = times_of_judgement(now, may_judge=may_judge)
        self._ledger = Ledger(transaction, statements.leases)

    async def take(self, claims: Sequence[Lease]) -> list[LeaseAnswer]:
        """Do the work of `Leases.take_leases`."""
        firsts: dict[CallKey, Lease] = {}
        for claim in claims:
            firsts.setdefault(call_of(claim.key), claim)
        answers = await self._answers(firsts)
        each = ((call_of(claim.key), claim.key.lease_id) for claim in claims)
        return answers_in_order(each, answers)

    async def _answers(self, claims: Claims) -> dict[CallKey, LeaseAnswer]:
        """Answer claims; query budgets only for claims that reserve money."""
        answered = set[CallKey]()
        while True:
            stopped = await self._stopped(claims)
            wanted = _without(claims, answered | stopped)
            over_budget = await self._over_budget(wanted)
            granted = await self._take(_without(wanted, over_budget))
            # D-107: in the opposite order, a response in between would be paid for twice. After the
            # lease is taken, a later response belongs to this lease or a later one.
            answered |= await self._answered(wanted)
            if answered.isdisjoint(granted):
                break
            await self._transaction.restart()
        for call in granted:
            self._ledger.add(call.experiment_id, claims[call].reserve)
        await self._ledger.write()
        answers = dict.fromkeys(claims, LeaseAnswer.HELD)
        answers |= dict.fromkeys(over_budget, LeaseAnswer.OVER_BUDGET)
        answers |= dict.fromkeys(answered, LeaseAnswer.ANSWERED)
        answers |= dict.fromkeys(stopped, LeaseAnswer.STOPPED)
        held = await self._held(_without(claims, over_budget | granted | stopped | answered))
        return answers | dict.fromkeys(granted | held.already, LeaseAnswer.GRANTED)

    async def _stopped(self, claims: Claims) -> set[CallKey]:
        """Return the turns of stopped experiments."""
        ids = {call.experiment_id for call in claims}
        stopped = await stopped_among(self._transaction, self._statements.experiments, ids)
        if not stopped:
            return set()
        return {call for call in claims if call.experiment_id in stopped}

    async def _over_budget(self, wanted: Claims) -> set[CallKey]:
        """Lock the budgets; returns the turns that only the budget forbids."""
        priced = {call: claim for call, claim in wanted.items() if claim.reserve}
        if not priced:
            return set()
        budgets = await self._ledger.lock({call.experiment_id for call in priced})
        left = {id_: amount for id_, amount in budgets.items() if amount is not None}
        if not _exceeds(priced, left):
            return set()
        held = await self._held(priced)
        unavailable = held.by_others | held.already | await self._answered(priced)
        over_budget = set()
        for call, claim in priced.items():
            if call in unavailable or call.experiment_id not in left:
                continue
            if claim.reserve > left[call.experiment_id]:
                over_budget.add(call)
            else:
                left[call.experiment_id] -= claim.reserve
        return over_budget

    async def _take(self, wanted: Claims) -> set[CallKey]:
        """Lease the free ones of these turns to the owner; returns them."""
        if not wanted:
            return set()
        rows = [
            row_of_calls(
                call,
                TurnCalls(
                    1,
                    self._owner,
                    self._now + round(claim.seconds * SECOND),
                    claim.reserve,
                    claim.key.lease_id,
                ),
            )
            for call, claim in sorted(wanted.items())
        ]
        taken = await self._transaction.insert(self._statements.leases.lease, rows, **self._times)
        return {CallKey._make(row) for row in taken}

    async def _held(self, claims: Claims) -> Held:
        held = Held(set(), set())
        for chunk in chunks(sorted(claims)):
            parameters = self._statements.leases.keys_of_calls(
                chunk, claimant=self._owner, **self._times
            )
            rows = await self._transaction.execute(self._statements.leases.find_leases, parameters)
            for *key, owner, lease_id, may_be_taken in rows:
                call = CallKey._make(key)
                if not may_be_taken:
                    held.by_others.add(call)
                elif (owner, lease_id) == (self._owner, claims[call].key.lease_id):
                    held.already.add(call)
        return held

    async def _answered(self, calls: Iterable[CallKey]) -> set[CallKey]:
        """Return the turns with a stored response."""
        turns = {(call.run_id, call.turn): call for call in calls}
        answered: set[CallKey] = set()
        for chunk in chunks({run_id for run_id, _ in turns}):
            rows = await self._transaction.execute(
                self._statements.responses.response_keys, {"run_ids": chunk}
            )
            answered.update(turns[run_id, turn] for run_id, turn in rows if (run_id, turn) in turns)
        return answered


def times_of_judgement(now: int, *, may_judge: bool = True) -> dict[str, int]:
    """Return the parameters of a statement that selects live owners and open leases.

    No silent owner is dead unless the claimant may judge its silence.
    """
    silent_before = now - round(DEAD_AFTER_SECONDS * SECOND)
    dead_before = silent_before if may_judge else 0
    return {"now": now, "dead_before": dead_before, "silent_before": silent_before}


def _without(claims: Claims, calls: Collection[CallKey]) -> Claims:
    if not calls:
        return claims
    return {call: claim for call, claim in claims.items() if call not in calls}


def _exceeds(priced: Claims, left: Mapping[str, int]) -> bool:
    """Whether the claims together exceed the rest of a budget."""
    wanted = dict.fromkeys(left, 0)
    for call, claim in priced.items():
        if call.experiment_id in wanted:
            wanted[call.experiment_id] += claim.reserve
    return any(wanted[id_] > left[id_] for id_ in left)


_TROUBLES = TypeAdapter(list[Trouble])

TROUBLES_OF_OWNERS = Records("owners", 1, lambda row: _TROUBLES.validate_json(row[1]))
"""Reads (owner, troubles)."""


def record_of_troubles(troubles: Collection[Trouble]) -> str | None:
    """Return the content of the column `troubles`; None without troubles."""
    return _TROUBLES.dump_json(list(troubles)).decode() if troubles else None


class SqlLeases(SqlRole):
    """Grants and ends leases, and knows the live owners."""

    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        if not leases:
            return []
        async with self._database.write() as transaction:
            now = await self._clock.now(transaction)
            leasing = Leasing(transaction, self._statements, owner, now, may_judge=may_judge)
            return await leasing.take(leases)

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        await self._end({lease: Ending(cost=0, begun=False) for lease in leases})

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        await self._end({lease: Ending(None if billed else 0) for lease, billed in ends})

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[ModelInHand],
        troubles: Collection[Trouble] = (),
        *,
        overdue: bool = False,
    ) -> None:
        async with self._database.write() as transaction:
            await self._write_owners(
                transaction,
                [owner],
                gone=False,
                in_hand=in_hand,
                troubles=troubles,
                overdue=overdue,
            )

    async def leave(self, owner: str) -> None:
        async with self._database.write() as transaction:
            await self._write_owners(transaction, [owner], gone=True)
            long_ago = await self._clock.now(transaction) - FORGOTTEN_AFTER
            await transaction.execute(FORGET_OWNERS, {"forgotten_before": long_ago})

    async def leave_others(self, owner: str) -> None:
        async with self._database.write() as transaction:
            parameters = {"now": await self._clock.now(transaction)}
            owners = {name for (name,) in await transaction.execute(LIST_OWNERS, parameters)}
            others = {name for name in owners if name != owner and not is_batch(name)}
            await self._write_owners(transaction, others, gone=True)

    async def waiting_turns(self, experiment_id: str) -> Sequence[WaitingTurn]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(WAITING_TURNS, parameters)
        return [
            WaitingTurn(LeaseKey(experiment_id, run_id, turn, lease_id), owner, reserved)
            for run_id, turn, lease_id, owner, reserved in rows
        ]

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        owners: Counter[str] = Counter()
        async with self._database.read() as transaction:
            times = times_of_judgement(await self._clock.now(transaction))
            for (in_hand,) in await transaction.execute(IN_HAND, times):
                owners.update({model for id_, model in json.loads(in_hand) if id_ == experiment_id})
        return owners

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        async with self._database.read() as transaction:
            times = times_of_judgement(await self._clock.now(transaction))
            rows = await transaction.execute(FIND_TROUBLES, times)
        told = (trouble for troubles in TROUBLES_OF_OWNERS.facts(rows) for trouble in troubles)
        return [trouble for trouble in told if trouble.experiment_id == experiment_id]

    async def calls(self, experiment_id: str) -> CallCount:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(CALLS_OF_EXPERIMENT, parameters)
        [(calls, turns)] = rows
        return CallCount(calls=int(calls), turns=turns)

    async def spending(self, experiment_id: str) -> Spending:
        if spending := (await self.spending_of([experiment_id])).get(experiment_id):
            return spending
        raise self._no_experiment(experiment_id)

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        spending: dict[str, Spending] = {}
        async with self._database.read() as transaction:
            times = times_of_judgement(await self._clock.now(transaction))
            for chunk in chunks(experiment_ids):
                rows = await transaction.execute(
                    self._statements.leases.spendings, {"experiment_ids": chunk, **times}
                )
                for experiment_id, budget, committed, in_flight, *others in rows:
                    found = Spending(budget, committed, int(in_flight), *others)
                    spending[experiment_id] = found
        return spending

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        parameters = {"at_experiment_id": experiment_id, "reserve": reserve}
        async with self._database.write() as transaction:
            await transaction.execute(EXHAUST, parameters)

    async def _end(self, endings: Mapping[LeaseKey, Ending]) -> None:
        if not endings:
            return
        async with self._database.write() as transaction:
            ledger = Ledger(transaction, self._statements.leases)
            await ledger.lock({lease.experiment_id for lease in endings})
            await ledger.settle(endings)
            await ledger.write()

    async def _write_owners(
        self,
        transaction: Transaction,
        owners: Collection[str],
        *,
        gone: bool,
        in_hand: Collection[ModelInHand] = (),
        troubles: Collection[Trouble] = (),
        overdue: bool = False,
    ) -> None:
        seen_at = await self._clock.now(transaction)
        rows = [
            {
                "owner": owner,
                "beat": 1,
                "seen_at": seen_at,
                "gone": gone,
                "in_hand": json.dumps(sorted(set(in_hand))),
                "troubles": record_of_troubles(troubles),
                "overdue": overdue,
            }
            for owner in sorted(owners)
        ]
        if rows:
            await transaction.execute(
                self._statements.leases.write_owners, self._statements.leases.rows(rows)
            )
