"""The leases of the SQL store, who takes them, and what their calls cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from socratic_bench.adapters.sql.lease_statements import (
    EXHAUST,
    FIND_SPENDING,
    FORGET_OWNERS,
    IN_HAND,
    LIST_OWNERS,
)
from socratic_bench.adapters.sql.leasing import (
    MICROSECONDS,
    Claimant,
    Leasing,
    times_of_judgement,
)
from socratic_bench.adapters.sql.ledger import Ending, Ledger
from socratic_bench.adapters.sql.part import SqlPart
from socratic_bench.adapters.sql.sharing import Sharing
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.ports.leases import (
    CallEnd,
    Claim,
    LeaseAnswer,
    LeaseKey,
    ModelInHand,
    Spending,
)
from socratic_bench.ports.store import ShareClaim

FORGOTTEN_AFTER = 7 * 24 * 3600 * MICROSECONDS
"""An owner that nobody has heard of for so long has no lease whose time is not over."""


class SqlLeaseStore(SqlPart):
    """Grants leases and parts of shared limits."""

    async def take_leases(self, claims: Sequence[Claim], owner: str) -> Sequence[LeaseAnswer]:
        if not claims:
            return []
        async with self._database.write() as transaction:
            claimant = Claimant(owner, await self._clock.now(transaction))
            leasing = Leasing(transaction, self._lookups, self._leases, claimant)
            return await leasing.take(claims)

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        await self._end({lease: Ending(cost=0, begun=False) for lease in leases})

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        await self._end({lease: Ending(None if billed else 0) for lease, billed in ends})

    async def heartbeat(self, owner: str, in_hand: Collection[ModelInHand]) -> None:
        async with self._database.write() as transaction:
            await self._write_owners(transaction, [owner], gone=False, in_hand=in_hand)

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

    async def spending(self, experiment_id: str) -> Spending:
        async with self._database.read() as transaction:
            times = times_of_judgement(await self._clock.now(transaction))
            parameters = {"experiment_id": experiment_id, **times}
            rows = await transaction.execute(FIND_SPENDING, parameters)
        if not rows:
            raise self._no_experiment(experiment_id)
        [(budget, committed, in_flight, exhausted)] = rows
        return Spending(budget, committed, int(in_flight), exhausted)

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        parameters = {"at_experiment_id": experiment_id, "reserve": reserve}
        async with self._database.write() as transaction:
            await transaction.execute(EXHAUST, parameters)

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        if not claims:
            return {}
        async with self._database.write() as transaction:
            now = await self._clock.now(transaction)
            sharing = Sharing(transaction, self._lookups, self._writes, owner)
            return await sharing.claim(claims, now, now + round(seconds * MICROSECONDS))

    async def _end(self, endings: Mapping[LeaseKey, Ending]) -> None:
        if not endings:
            return
        async with self._database.write() as transaction:
            ledger = Ledger(transaction, self._leases)
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
    ) -> None:
        seen_at = await self._clock.now(transaction)
        rows = [
            {
                "owner": owner,
                "beat": 1,
                "seen_at": seen_at,
                "gone": gone,
                "in_hand": json.dumps(sorted(set(in_hand))),
            }
            for owner in sorted(owners)
        ]
        if rows:
            await transaction.execute(self._leases.write_owners, self._leases.rows(rows))
