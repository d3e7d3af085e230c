"""The role `Leases` of the SQL store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.records import Records
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.leasing import (
    Leasing,
    times_of_judgement,
)
from socratic_bench.adapters.stores.sql.ledger import (
    CALLS_OF_EXPERIMENT,
    EXHAUST,
    FIND_TROUBLES,
    FORGET_OWNERS,
    IN_HAND,
    LIST_OWNERS,
    Ending,
    Ledger,
)
from socratic_bench.adapters.stores.sql.role import SqlRole
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.leasing import FORGOTTEN_AFTER, LeaseAnswer
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    LeaseKey,
    ModelInHand,
    Spending,
)

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
            await self._write_owners(transaction, owners - {owner}, gone=True)

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
                for experiment_id, budget, committed, in_flight, exhausted in rows:
                    found = Spending(budget, committed, int(in_flight), exhausted)
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
