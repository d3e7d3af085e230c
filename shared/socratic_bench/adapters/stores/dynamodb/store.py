"""The store in one DynamoDB table."""

from __future__ import annotations

from socratic_bench.adapters.stores.dynamodb import keys, schema
from socratic_bench.adapters.stores.dynamodb.aggregates import DynamoDBAggregates
from socratic_bench.adapters.stores.dynamodb.clients import parse
from socratic_bench.adapters.stores.dynamodb.experiments import DynamoDBExperiments
from socratic_bench.adapters.stores.dynamodb.leases import DynamoDBLeases
from socratic_bench.adapters.stores.dynamodb.limits import DynamoDBSharedLimits
from socratic_bench.adapters.stores.dynamodb.responses import DynamoDBResponses
from socratic_bench.adapters.stores.dynamodb.role import Now
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.ports.stores.store import Store


class DynamoDBStore(
    DynamoDBExperiments,
    DynamoDBResponses,
    DynamoDBLeases,
    DynamoDBSharedLimits,
    DynamoDBAggregates,
    Store,
):
    """A Store in one table; any number of processes and functions may use it at once.

    A call serves its items in transactions of a few, and reads each as it is at that moment.
    """

    @classmethod
    def from_url(cls, url: str, now: Now | None = None) -> DynamoDBStore:
        """Return the store at `dynamodb://table`, without connecting yet.

        `now` replaces the machine's clock. Raises InvalidSettings for another form of `url`.
        """
        return cls(DynamoTable(parse(url)), now)

    @property
    def refused_writes(self) -> int:
        """How many writes DynamoDB has refused this process: each was paid for, and tried again."""
        return self._table.refused

    async def prepare(self) -> None:
        await schema.prepare(self._table)

    async def check_readable(self) -> None:
        await schema.check(self._table)

    async def ping(self) -> None:
        await self._table.get([keys.SCHEMA])

    async def close(self) -> None:
        await self._table.close()
