"""The claims of one owner for turns of one experiment, decided and written together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import Books, read_books, written
from socratic_bench.adapters.stores.dynamodb.items import Item, Transaction, at
from socratic_bench.adapters.stores.dynamodb.schema import EXPIRES
from socratic_bench.adapters.stores.dynamodb.table import Table
from socratic_bench.adapters.stores.dynamodb.turns import Turn
from socratic_bench.domain.leasing import (
    Claimant,
    Holder,
    LeaseAnswer,
    OpenLease,
    TurnStanding,
    answer_to,
)
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import Lease, ModelInHand
from socratic_bench.ports.stores.responses import TurnKey

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


_OVERTAKING: Final = (LeaseAnswer.GRANTED, LeaseAnswer.OVER_BUDGET)
"""The answers to a claim of a turn whose lease may be taken over."""


class Granting:
    """Claims of different turns of one experiment: as many as one transaction holds."""

    def __init__(
        self, table: Table, leases: Sequence[Lease], owner: str, now: int, *, may_judge: bool
    ) -> None:
        self._table = table
        self._leases = leases
        self._owner = owner
        self._now = now
        self._may_judge = may_judge
        self._owners: Mapping[str, Owner] = {}
        self._overtaken: set[str] = set()
        """The owners whose leases this call takes over because they are dead."""

    async def answers(self) -> list[LeaseAnswer]:
        """Grant leases in their order, in one transaction; returns an answer for each claim."""
        turns = [TurnKey(lease.key.run_id, lease.key.turn) for lease in self._leases]
        experiment_id = self._leases[0].key.experiment_id
        backoff = self._table.backoff()
        while True:
            books, _ = await read_books(self._table, experiment_id, turns)
            await self._know_owners(books)
            self._overtaken = set()
            answers = [
                self._answer(books, turn, lease)
                for turn, lease in zip(books.turns.values(), self._leases, strict=True)
            ]
            if await written(self._table, books, self._expect_owners):
                return answers
            await backoff.pause()

    async def _know_owners(self, books: Books) -> None:
        """Read the owners of the open leases of others."""
        others = {turn.owner for turn in books.turns.values() if turn.lease_id} - {self._owner}
        found = await self._table.get(map(keys.owner, others))
        self._owners = {each.name: each for each in owners(found.values(), self._now)}

    def _answer(self, books: Books, turn: Turn, lease: Lease) -> LeaseAnswer:
        """Lease a turn if the port's conditions hold."""
        held = self._held(turn)
        standing = TurnStanding(books.account.may_call, turn.is_answered, held, books.left)
        claimant = Claimant(self._owner, lease.key.lease_id, lease.reserve, self._may_judge)
        answer = answer_to(claimant, standing)
        if held is not None:
            if held.owner != self._owner and held.holder.is_dead and answer in _OVERTAKING:
                self._overtaken.add(held.owner)
            if (held.owner, held.lease_id) == (self._owner, lease.key.lease_id):
                return answer
        if answer is LeaseAnswer.GRANTED:
            until = self._now + round(lease.seconds * SECOND)
            books.lease(turn, lease.key, self._owner, until, lease.reserve)
        return answer

    def _held(self, turn: Turn) -> OpenLease | None:
        if not turn.lease_id:
            return None
        owner = self._owners.get(turn.owner)
        holder = Holder.UNKNOWN if owner is None else owner.holder(self._now)
        is_over = (turn.leased_until or 0) < self._now
        return OpenLease(turn.owner, turn.lease_id, is_over, holder)

    def _expect_owners(self, transaction: Transaction) -> None:
        """Expect that the owners that were dead have not come back since."""
        for name in sorted(self._overtaken):
            owner = self._owners[name]
            transaction.check(
                keys.owner(name),
                "#seen_at = :seen_at AND #is_gone = :is_gone",
                {"seen_at": owner.seen_at, "is_gone": owner.is_gone},
            )
