"""The claims of one owner for turns of one experiment, decided and written together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import Books, read_books, written
from socratic_bench.adapters.stores.dynamodb.items import SK, Item, Transaction, at
from socratic_bench.adapters.stores.dynamodb.schema import EXPIRES
from socratic_bench.adapters.stores.dynamodb.table import Table
from socratic_bench.adapters.stores.dynamodb.turns import Turn
from socratic_bench.domain.leasing import (
    FORGOTTEN_AFTER,
    SECOND,
    Claimant,
    LeaseAnswer,
    Owner,
    TurnStanding,
    answer_to,
)
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import Lease
from socratic_bench.ports.stores.responses import TurnKey

_TROUBLES = TypeAdapter(tuple[Trouble, ...])


def item_of_owner(name: str, owner: Owner) -> Item:
    in_hand, troubles = sorted(owner.in_hand), owner.troubles
    return at(
        keys.owner(name),
        {
            "seen_at": owner.seen_at,
            "is_gone": owner.gone,
            "in_hand": json.dumps(in_hand) if in_hand else None,
            "troubles": _TROUBLES.dump_json(troubles).decode() if troubles else None,
            "overdue": owner.overdue or None,
            EXPIRES: (owner.seen_at + FORGOTTEN_AFTER) // SECOND,
        },
    )


def owners(items: Iterable[Item], now: int) -> dict[str, Owner]:
    """Return the owners in these items, without forgotten ones: DynamoDB deletes those later."""
    read = {str(item[SK]): _owner_of_item(item) for item in items}
    return {name: each for name, each in read.items() if each.seen_at >= now - FORGOTTEN_AFTER}


def _owner_of_item(item: Item) -> Owner:
    return Owner(
        seen_at=int(item["seen_at"]),
        gone=bool(item["is_gone"]),
        overdue=bool(item.get("overdue", False)),
        in_hand=frozenset(
            (id_, model) for id_, model in json.loads(str(item.get("in_hand", "[]")))
        ),
        troubles=_TROUBLES.validate_json(str(item.get("troubles", "[]"))),
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
        held = {turn.calls.owner for turn in books.turns.values() if turn.calls.lease_id}
        found = await self._table.get(map(keys.owner, held - {self._owner}))
        self._owners = owners(found.values(), self._now)

    def _answer(self, books: Books, turn: Turn, lease: Lease) -> LeaseAnswer:
        """Lease a turn if the rule of leases allows it."""
        account = books.account
        held = turn.calls.open(self._owners, self._now)
        claimant = Claimant(self._owner, lease.key.lease_id, lease.reserve, self._may_judge)
        standing = TurnStanding(account.may_call, turn.is_answered, held, account.left)
        answer = answer_to(claimant, standing)
        if held is not None:
            if held.owner != self._owner and held.holder.is_dead and answer in _OVERTAKING:
                self._overtaken.add(held.owner)
            if held.is_of(claimant):
                return answer
        if answer is LeaseAnswer.GRANTED:
            until = self._now + round(lease.seconds * SECOND)
            books.lease(turn, lease.key, self._owner, until, lease.reserve)
        return answer

    def _expect_owners(self, transaction: Transaction) -> None:
        """Expect that the owners that were dead have not come back since."""
        for name in sorted(self._overtaken):
            owner = self._owners[name]
            transaction.check(
                keys.owner(name),
                "#seen_at = :seen_at AND #is_gone = :is_gone",
                {"seen_at": owner.seen_at, "is_gone": owner.gone},
            )
