"""The role `SharedLimits` of the store in DynamoDB.

A limit is one item with the shares of all its owners, a pause is another: whoever changes one
replaces the item it has read, or begins again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.items import VERSION, Item, ItemKey, Value, at
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, ends_before_close
from socratic_bench.domain.fair_share import Share, after_claim
from socratic_bench.domain.leasing import SECOND
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim


class DynamoDBSharedLimits(DynamoDBRole):
    """Divides shared limits, and keeps the pauses of models."""

    @ends_before_close
    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        of_scopes = {claim.scope: claim for claim in claims}
        shares = await together(self._share(claim, owner, seconds) for claim in of_scopes.values())
        return dict(zip(of_scopes, shares, strict=True))

    @ends_before_close
    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        answers = await together(map(self._pause, news))
        return {each.scope: answer for each, answer in zip(news, answers, strict=True)}

    async def _share(self, claim: ShareClaim, owner: str, seconds: float) -> int:
        key = keys.limit(claim.scope)
        async with self._table.alone(key.partition):
            backoff = self._table.backoff()
            while True:
                seen = await self._seen(key)
                now = self._now()
                until = now + round(seconds * SECOND)
                stored = {} if seen is None else json.loads(str(seen["shares"]))
                held = {name: Share(*share) for name, share in stored.items()}
                parts, shares = after_claim(held, claim.total, owner, claim.wants, now, until)
                if await self._replaced(key, seen, {"shares": json.dumps(shares)}):
                    return parts
                await backoff.pause()

    async def _pause(self, news: PauseNews) -> PauseAnswer:
        key = keys.pause(news.scope)
        async with self._table.alone(key.partition):
            backoff = self._table.backoff()
            while True:
                seen = await self._seen(key)
                now = self._now() / SECOND
                before = _pause_of_item(seen)
                pause, may_call = after(before, news, now)
                if pause == before or await self._replaced(key, seen, _attributes(pause)):
                    return PauseAnswer(pause.at(now), may_call)
                await backoff.pause()

    async def _seen(self, key: ItemKey) -> Item | None:
        return (await self._table.get([key])).get(key)

    async def _replaced(
        self, key: ItemKey, seen: Item | None, attributes: Mapping[str, Value]
    ) -> bool:
        """Replace an item unless another process was quicker."""
        transaction = self._table.transaction()
        transaction.put_version(at(key, attributes), int(seen[VERSION]) if seen else 0)
        return not await self._table.commit(transaction)


def _pause_of_item(item: Item | None) -> Pause:
    """Return the pause in an item; its times are in microseconds there."""
    if item is None:
        return NONE
    return Pause(
        int(item["number"]),
        int(item["in_a_row"]),
        int(item["until"]) / SECOND,
        int(item["next_call"]) / SECOND,
        int(item["gap"]) / SECOND,
        str(item["kind"]),
        str(item["reason"]),
    )


def _attributes(pause: Pause) -> Mapping[str, Value]:
    return {
        "number": pause.number,
        "in_a_row": pause.in_a_row,
        "until": round(pause.until * SECOND),
        "next_call": round(pause.next_call * SECOND),
        "gap": round(pause.gap * SECOND),
        "kind": pause.kind,
        "reason": pause.reason,
    }
