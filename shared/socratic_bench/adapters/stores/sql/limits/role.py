"""The role `SharedLimits` of the SQL store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from socratic_bench.adapters.stores.sql.limits.pausing import Pausing
from socratic_bench.adapters.stores.sql.limits.sharing import Sharing
from socratic_bench.adapters.stores.sql.role import SqlRole
from socratic_bench.domain.pause import PauseNews
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim

MICROSECONDS: Final = 1_000_000


class SqlSharedLimits(SqlRole):
    """Divides shared limits, and keeps the pauses of models."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        if not claims:
            return {}
        async with self._database.write() as transaction:
            now = await self._clock.now(transaction)
            sharing = Sharing(transaction, self._statements.shares, owner)
            return await sharing.claim(claims, now, now + round(seconds * MICROSECONDS))

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        told = [each for each in news if each.replied or each.pushed_back or each.wants_call]
        looked_at = [each for each in news if each not in told]
        answers: dict[str, PauseAnswer] = {}
        if told:
            async with self._database.write() as transaction:
                pausing = Pausing(transaction, self._statements.pauses)
                answers |= await pausing.take(told, await self._clock.now(transaction))
        if looked_at:
            async with self._database.read() as transaction:
                pausing = Pausing(transaction, self._statements.pauses)
                answers |= await pausing.look(looked_at, await self._clock.now(transaction))
        return answers
