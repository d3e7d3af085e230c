"""The change of turns and of their experiment's account: read, decide, write, or begin again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import Item, Key, key_of
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.table.transaction import Transaction
from socratic_bench.adapters.stores.dynamodb.turns.account import Account, account_of_item
from socratic_bench.adapters.stores.dynamodb.turns.books import Books
from socratic_bench.adapters.stores.dynamodb.turns.turn import Turn, turn_of_item
from socratic_bench.ports.stores.responses import TurnKey

TURNS_AT_ONCE: Final = 48
"""The most turns of one transaction; for each, a lease may look at an owner besides."""

Decision = TypeVar("Decision")


async def read_books(
    table: Table, experiment_id: str, turns: Collection[TurnKey], more: Collection[Key] = ()
) -> tuple[Books, Mapping[Key, Item]]:
    """Read turns and their account, and `more` items."""
    account = keys.account(experiment_id)
    found = await table.get([account, *(keys.turn(*turn) for turn in turns), *more])
    books = Books(
        experiment_id,
        account_of_item(found.get(account)),
        {turn: _turn(experiment_id, turn, found) for turn in turns},
    )
    return books, found


async def change(
    table: Table,
    experiment_id: str,
    turns: Collection[TurnKey],
    decide: Callable[[Books], Decision],
) -> Decision:
    """Let `decide` change the books, and write them; it decides again if others were quicker.

    `decide` must not keep what it changed before.
    """
    backoff = table.backoff()
    while True:
        books, _ = await read_books(table, experiment_id, turns)
        decision = decide(books)
        if await written(table, books):
            return decision
        await backoff.pause()


async def written(
    table: Table, books: Books, check: Callable[[Transaction], None] | None = None
) -> bool:
    """Write changed books, unless others have changed any of it since it was read.

    `check` adds what else has to be as it was. The marks of new turns are written first and alone,
    for half the price: readers pass over a mark without a turn, and a turn is never without a mark.
    """
    transaction = table.transaction()
    books.write_to(transaction)
    if not len(transaction):
        return True
    if check is not None:
        check(transaction)
    marks = books.new_marks
    await table.write(marks)
    if not await table.commit(transaction):
        return True
    if marks and (await account_of(table, books.experiment_id)).is_deleted:
        await table.write([], map(key_of, marks))  # nobody looks for them again
    return False


async def account_of(table: Table, experiment_id: str) -> Account:
    key = keys.account(experiment_id)
    return account_of_item((await table.get([key])).get(key))


def _turn(experiment_id: str, key: TurnKey, found: Mapping[Key, Item]) -> Turn:
    """Return a turn of this experiment; an empty one for a run of another experiment."""
    item = found.get(keys.turn(*key))
    if item is None or item["experiment"] != experiment_id:
        return Turn(experiment_id, key)
    return turn_of_item(key, item)
