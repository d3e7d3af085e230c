"""The owners of leases, by their last heartbeats."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import Item, at
from socratic_bench.adapters.stores.dynamodb.table.schema import EXPIRES
from socratic_bench.domain.leasing import Holder
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import ModelInHand

SECOND: Final = 1_000_000
"""In microseconds."""

FORGOTTEN_AFTER: Final = timedelta(days=7) // timedelta(microseconds=1)
"""Silence after which the store forgets an owner: its leases have expired."""

_TROUBLES = TypeAdapter(tuple[Trouble, ...])


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner, by its last heartbeat."""

    name: str
    seen_at: int
    is_gone: bool
    in_hand: tuple[ModelInHand, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    overdue: bool = False

    def holder(self, now: int) -> Holder:
        """Return its standing as the owner of a lease."""
        silent = (now - self.seen_at) / SECOND
        return Holder.of(silent, is_gone=self.is_gone, overdue=self.overdue)


def item_of_owner(
    name: str,
    now: int,
    in_hand: Collection[ModelInHand] = (),
    troubles: Collection[Trouble] = (),
    *,
    is_gone: bool = False,
    overdue: bool = False,
) -> Item:
    return at(
        keys.owner(name),
        {
            "seen_at": now,
            "is_gone": is_gone,
            "in_hand": json.dumps(sorted(set(in_hand))) if in_hand else None,
            "troubles": _TROUBLES.dump_json(tuple(troubles)).decode() if troubles else None,
            "overdue": overdue or None,
            EXPIRES: (now + FORGOTTEN_AFTER) // SECOND,
        },
    )


def owners(items: Iterable[Item], now: int) -> list[Owner]:
    """Return the owners in these items, without forgotten ones: DynamoDB deletes those later."""
    read = map(_owner_of_item, items)
    return [each for each in read if each.seen_at >= now - FORGOTTEN_AFTER]


def _owner_of_item(item: Item) -> Owner:
    return Owner(
        name=str(item["SK"]),
        seen_at=int(item["seen_at"]),
        is_gone=bool(item["is_gone"]),
        in_hand=tuple(ModelInHand(*each) for each in json.loads(str(item.get("in_hand", "[]")))),
        troubles=_TROUBLES.validate_json(str(item.get("troubles", "[]"))),
        overdue=bool(item.get("overdue", False)),
    )
