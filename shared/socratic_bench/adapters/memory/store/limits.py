"""The role `SharedLimits` of the store in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from socratic_bench.adapters.memory.store.role import MemoryRole
from socratic_bench.adapters.memory.store.state import Share
from socratic_bench.domain.fair_share import fair_shares
from socratic_bench.domain.pause import NONE, PauseNews, after
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim

TURN_SECONDS: Final = 30
"""The time after which indivisible parts go to other owners."""


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
    shares: dict[str, Share], claim: ShareClaim, owner: str, now: datetime, seconds: float
) -> int:
    """Give an owner its fair share of a limit, or the rest that others left."""
    for name, share in list(shares.items()):
        if name == owner or share.held_until < now:
            del shares[name]
    wants = {name: share.wants for name, share in shares.items()}
    turn = int(now.timestamp() // TURN_SECONDS)
    fair = fair_shares(claim.total, {**wants, owner: claim.wants}, turn)[owner]
    left = claim.total - sum(share.parts for share in shares.values())
    parts = max(0, min(fair, left))
    if parts or claim.wants:
        shares[owner] = Share(parts, claim.wants, now + timedelta(seconds=seconds))
    return parts
