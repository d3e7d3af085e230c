"""The role `Leases` of the store in DynamoDB."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import (
    TURNS_AT_ONCE,
    Books,
    account_of,
    account_of_item,
    change,
    read_books,
    written,
)
from socratic_bench.adapters.stores.dynamodb.clients import chunks, together
from socratic_bench.adapters.stores.dynamodb.items import SK, Item, WriteTransaction, at
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, ends_before_close
from socratic_bench.adapters.stores.dynamodb.schema import EXPIRES
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.dynamodb.turns import StoredTurn, pending_turns
from socratic_bench.domain.leasing import (
    FORGOTTEN_AFTER,
    SECOND,
    Claimant,
    LeaseAnswer,
    Owner,
    TurnStanding,
    answer_to,
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
        self, table: DynamoTable, leases: Sequence[Lease], owner: str, now: int, *, may_judge: bool
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

    def _answer(self, books: Books, turn: StoredTurn, lease: Lease) -> LeaseAnswer:
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

    def _expect_owners(self, transaction: WriteTransaction) -> None:
        """Expect that the owners that were dead have not come back since."""
        for name in sorted(self._overtaken):
            owner = self._owners[name]
            transaction.check(
                keys.owner(name),
                "#seen_at = :seen_at AND #is_gone = :is_gone",
                {"seen_at": owner.seen_at, "is_gone": owner.gone},
            )


class DynamoDBLeases(DynamoDBRole):
    """Grants and ends leases, and knows the live owners."""

    @ends_before_close
    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        firsts: dict[LeaseKey, Lease] = {}
        for lease in leases:
            firsts.setdefault(_turn_of(lease.key), lease)
        of_experiments: defaultdict[str, list[Lease]] = defaultdict(list)
        for lease in firsts.values():
            of_experiments[lease.key.experiment_id].append(lease)
        answered = await together(
            self._take_of_experiment(some, owner, may_judge=may_judge)
            for some in of_experiments.values()
        )
        granted = {turn: answer for answers in answered for turn, answer in answers.items()}
        each = ((_turn_of(lease.key), lease.key.lease_id) for lease in leases)
        return answers_in_order(each, granted)

    async def _take_of_experiment(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool
    ) -> dict[LeaseKey, LeaseAnswer]:
        """Claim leases of different turns; a later one gets the room that earlier ones left."""
        answers: dict[LeaseKey, LeaseAnswer] = {}
        async with self._table.alone(leases[0].key.experiment_id):
            for some in chunks(leases, TURNS_AT_ONCE):
                granting = Granting(self._table, some, owner, self._now(), may_judge=may_judge)
                for lease, answer in zip(some, await granting.answers(), strict=True):
                    answers[_turn_of(lease.key)] = answer
        return answers

    @ends_before_close
    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        await self._end(leases, lambda books, lease: books.settle(lease, 0, begun=False))

    @ends_before_close
    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        are_billed: dict[LeaseKey, bool] = {}
        for lease, billed in ends:
            are_billed.setdefault(lease, billed)
        await self._end(
            are_billed, lambda books, lease: books.settle(lease, None if are_billed[lease] else 0)
        )

    async def _end(
        self, leases: Iterable[LeaseKey], end: Callable[[Books, LeaseKey], object]
    ) -> None:
        of_experiments: defaultdict[str, list[LeaseKey]] = defaultdict(list)
        for lease in dict.fromkeys(leases):
            of_experiments[lease.experiment_id].append(lease)
        await together(self._end_of_experiment(some, end) for some in of_experiments.values())

    async def _end_of_experiment(
        self, leases: Sequence[LeaseKey], end: Callable[[Books, LeaseKey], object]
    ) -> None:
        experiment_id = leases[0].experiment_id
        async with self._table.alone(experiment_id):
            for some in chunks(leases, TURNS_AT_ONCE):
                turns = {TurnKey(lease.run_id, lease.turn) for lease in some}

                def end_each(books: Books, some: Sequence[LeaseKey] = some) -> None:
                    for lease in some:
                        end(books, lease)

                await change(self._table, experiment_id, turns, end_each)

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[ModelInHand],
        troubles: Collection[Trouble] = (),
        *,
        overdue: bool = False,
    ) -> None:
        told = Owner(
            self._now(), overdue=overdue, in_hand=frozenset(in_hand), troubles=tuple(troubles)
        )
        await self._table.put(item_of_owner(owner, told))

    async def leave(self, owner: str) -> None:
        await self._table.put(item_of_owner(owner, Owner(self._now(), gone=True)))

    @ends_before_close
    async def leave_others(self, owner: str) -> None:
        now = self._now()
        others = {name for name, each in (await self._owners(now)).items() if not each.gone}
        listed = await self._table.query(keys.EXPERIMENTS)
        for turns in await together(pending_turns(self._table, str(item[SK])) for item in listed):
            others |= {turn.calls.owner for turn in turns if turn.calls.until >= now}
        await self._table.write(
            item_of_owner(name, Owner(now, gone=True))
            for name in sorted(others - {owner})
            if not is_batch(name)
        )

    async def waiting_turns(self, experiment_id: str) -> Sequence[WaitingTurn]:
        turns = await pending_turns(self._table, experiment_id)
        return [
            WaitingTurn(
                LeaseKey(experiment_id, *turn.key, turn.calls.lease_id),
                turn.calls.owner,
                turn.calls.reserved,
            )
            for turn in turns
            if turn.calls.lease_id and is_batch(turn.calls.owner)
        ]

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for owner in await self._alive():
            found.update(model for id_, model in owner.in_hand if id_ == experiment_id)
        return found

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        return [
            trouble
            for owner in await self._alive()
            for trouble in owner.troubles
            if trouble.experiment_id == experiment_id
        ]

    async def calls(self, experiment_id: str) -> CallCount:
        account = await account_of(self._table, experiment_id)
        return CallCount(calls=account.calls, turns=account.turns)

    async def spending(self, experiment_id: str) -> Spending:
        if spending := (await self.spending_of([experiment_id])).get(experiment_id):
            return spending
        raise self._no_experiment(experiment_id)

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        ids = list(dict.fromkeys(experiment_ids))
        found = await self._table.get(map(keys.account, ids))
        accounts = {id_: account_of_item(found.get(keys.account(id_))) for id_ in ids}
        spent = [id_ for id_ in ids if accounts[id_].committed]
        owners = await self._owners(self._now()) if spent else {}
        in_flight = dict(
            zip(spent, await together(self._in_flight(id_, owners) for id_ in spent), strict=True)
        )
        return {
            id_: Spending.of(
                account,
                # Calls begin and end between the reading of the account and that of their turns.
                min(in_flight.get(id_, 0), account.committed),
            )
            for id_, account in accounts.items()
            if account.is_registered
        }

    @ends_before_close
    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        backoff = self._table.backoff()
        while True:
            account = await account_of(self._table, experiment_id)
            if account.budget is None or account.budget - account.committed >= reserve:
                return
            if account.exhausted or account.is_deleted:
                return
            transaction = self._table.transaction()
            transaction.update(
                keys.account(experiment_id),
                "SET #exhausted = :true",
                "#budget = :budget AND #committed > :most",
                {"true": True, "budget": account.budget, "most": account.budget - reserve},
            )
            transaction.update(
                keys.experiment(experiment_id),
                "SET #exhausted = :true ADD #version :one",
                values={"true": True, "one": 1},
            )
            if not await self._table.commit(transaction):
                return
            await backoff.pause()

    async def _in_flight(self, experiment_id: str, owners: Mapping[str, Owner]) -> int:
        """Return the reservations under leases of live owners, in nanodollars."""
        now = self._now()
        turns = await pending_turns(self._table, experiment_id)
        return sum(turn.calls.in_flight(owners, now) for turn in turns)

    async def _owners(self, now: int) -> dict[str, Owner]:
        return owners(await self._table.query(keys.OWNERS), now)

    async def _alive(self) -> list[Owner]:
        now = self._now()
        return [each for each in (await self._owners(now)).values() if not each.holder(now).is_dead]


def _turn_of(lease: LeaseKey) -> LeaseKey:
    return lease._replace(lease_id="")
