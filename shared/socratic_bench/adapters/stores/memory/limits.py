"""The role `SharedLimits` of the store in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from socratic_bench.adapters.stores.memory.role import MemoryRole
from socratic_bench.adapters.stores.memory.state import HeldShare
from socratic_bench.domain.fair_share import Share, part_of
from socratic_bench.domain.pause import NONE, PauseNews, after
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim


class MemorySharedLimits(MemoryRole):
    """Divides shared limits, and keeps the pauses of models."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        of_scopes = {claim.scope: claim for claim in claims}
        async with self._state_alone() as state:
            now = self._now()
            return {
                scope: _claim_share(state.shares[scope], claim, owner, now, seconds)
                for scope, claim in of_scopes.items()
            }

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        answers: dict[str, PauseAnswer] = {}
        async with self._state_alone() as state:
            now = self._now().timestamp()
            for each in news:
                pause, may_call = after(state.pauses.get(each.scope, NONE), each, now)
                if each.replied or each.pushed_back or each.wants_call:
                    state.pauses[each.scope] = pause
                answers[each.scope] = PauseAnswer(pause.at(now), may_call)
        return answers


def _claim_share(
    held: dict[str, HeldShare], claim: ShareClaim, owner: str, now: datetime, seconds: float
) -> int:
    for name, each in list(held.items()):
        if name == owner or each.until < now:
            del held[name]
    others = {name: each.share for name, each in held.items()}
    parts = part_of(claim.total, owner, claim.wants, others, now.timestamp())
    if parts or claim.wants:
        held[owner] = HeldShare(Share(parts, claim.wants), now + timedelta(seconds=seconds))
    return parts
