"""The number of changes of experiments and cells."""

from __future__ import annotations

import random

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.table.transaction import Transaction


def grow(transaction: Transaction) -> None:
    """Count a change with the transaction that makes it."""
    shard = random.randrange(keys.REVISION_SHARDS)  # noqa: S311 - no secret
    transaction.update(keys.revision_shard(shard), "ADD #changes :one", values={"one": 1})


async def revision(table: Table) -> int:
    """Return the number of all changes: one query of a few small items."""
    return sum(int(item["changes"]) for item in await table.query(keys.REVISION))
