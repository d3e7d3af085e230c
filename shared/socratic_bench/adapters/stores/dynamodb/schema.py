"""The table itself, the version of its contents, and the number of changes to them."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.items import MISSING, PK, SK, WriteTransaction, at
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.errors import StoreBroken, StoreUnavailable


def grow(transaction: WriteTransaction) -> None:
    """Count a change with the transaction that makes it."""
    shard = random.randrange(keys.REVISION_SHARDS)  # noqa: S311 - no secret
    transaction.update(keys.revision_shard(shard), "ADD #changes :one", values={"one": 1})


async def revision(table: DynamoTable) -> int:
    """Return the number of all changes: one query of a few small items."""
    return sum(int(item["changes"]) for item in await table.query(keys.REVISION))


VERSION: Final = 1
"""The version of the keys and items that this code writes."""

EXPIRES: Final = "expires"
"""The attribute after whose time, in seconds, DynamoDB deletes an item."""

LOOK_SECONDS: Final = 0.5
MOST_LOOKS: Final = 60
"""A new table is looked at so often, and at these intervals, until it can be used."""

TABLE: Final[dict[str, Any]] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": PK, "AttributeType": "S"},
        {"AttributeName": SK, "AttributeType": "S"},
    ],
    "KeySchema": [
        {"AttributeName": PK, "KeyType": "HASH"},
        {"AttributeName": SK, "KeyType": "RANGE"},
    ],
}
"""What CreateTable is given. A deployment makes the same table, with point-in-time recovery."""


async def prepare(table: DynamoTable) -> None:
    """Make the table of an emulator, and write the version into an empty table.

    Raises StoreBroken where AWS has no such table: its deployment makes it.
    """
    if table.address.endpoint is not None:
        await _make(table)
    # A role that only reads, such as the API's, may not write the version.
    if await table.get([keys.SCHEMA]):
        await check(table)
        return
    marking = table.transaction()
    marking.put(at(keys.SCHEMA, {"schema": VERSION, "oldest_reader": VERSION}), MISSING)
    if await table.commit(marking):
        await check(table)


async def check(table: DynamoTable) -> None:
    """Check that this version can read the table. Raises StoreBroken."""
    found = await table.get([keys.SCHEMA])
    if not found:
        raise StoreBroken(f"{table.name}: the store is empty")
    [item] = found.values()
    if int(item["oldest_reader"]) > VERSION:
        raise StoreBroken(
            f"{table.name}: a newer version of Socratic Bench changed the store; upgrade this one"
        )


async def _make(table: DynamoTable) -> None:
    """Make the table unless it is there, and wait until it can be used."""
    try:
        await table.call("describe_table", TableName=table.address.table)
    except StoreBroken:
        with suppress(StoreUnavailable):  # another process makes it
            await table.call("create_table", TableName=table.address.table, **TABLE)
    for _ in range(MOST_LOOKS):
        described = await table.call("describe_table", TableName=table.address.table)
        if described["Table"]["TableStatus"] == "ACTIVE":
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise StoreUnavailable(f"{table.name}: the new table is not ready; try again later")
