"""The operations on a table, and its client."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from socratic_bench.adapters.stores.dynamodb.clients import (
    ERRORS,
    READ,
    WRITTEN,
    Bodies,
    Client,
    TableAddress,
    chunks,
    code_of,
    explain,
    together,
)
from socratic_bench.adapters.stores.dynamodb.items import (
    PK,
    SK,
    Item,
    ItemKey,
    WriteTransaction,
    decoded,
    encoded,
    encoded_key,
    key_of,
)
from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import StoreError, StoreUnavailable

CONFLICT_SECONDS: Final = 30.0
"""Seconds after which a transaction that always meets another one is given up."""

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 1.0
"""Seconds before another try; the pause doubles, and a random part of it is kept."""

CLOSE_SECONDS: Final = 30.0

_FAILED = "ConditionalCheckFailed"
_CONFLICTS: Final = frozenset(
    {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
)
_THROTTLINGS: Final = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ThrottlingError",
        "ThrottlingException",
    }
)
"""Why writes were refused that may succeed unchanged."""

CONFLICT: Final = "other writers changed the same items"
THROTTLED: Final = "the table took no more requests"
"""The same for people."""


class Backoff:
    """Pauses between the tries of one write. Raises StoreUnavailable when time is up."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._longest = FIRST_PAUSE
        self._until = time.monotonic() + CONFLICT_SECONDS

    async def pause(self, reason: str = CONFLICT) -> None:
        """Pause before the next try; `reason` says why the last one failed."""
        if time.monotonic() > self._until:
            raise StoreUnavailable(
                f"{self._name}: {reason} for {CONFLICT_SECONDS:.0f} s; try again later"
            )
        await asyncio.sleep(random.uniform(0, self._longest))  # noqa: S311 - no secret
        self._longest = min(LONGEST_PAUSE, 2 * self._longest)


class DynamoTable:
    """One table. It connects on first use, and closes after the last one."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        self._client = Client("dynamodb", address)
        self.bodies = Bodies(address)
        self.refused = 0
        """How many transactions and conditional writes DynamoDB has refused."""

        self._alone: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._in_use = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def name(self) -> str:
        """The table for people."""
        return self._address.name

    @property
    def address(self) -> TableAddress:
        return self._address

    def transaction(self) -> WriteTransaction:
        """Return an empty transaction."""
        return WriteTransaction(self._address.table)

    def alone(self, name: str) -> asyncio.Lock:
        """Return this process's lock of that name.

        Transactions of one process that change the same item wait here, and not for DynamoDB to
        refuse all but one.
        """
        lock = self._alone.get(name)
        if lock is None:
            lock = self._alone[name] = asyncio.Lock()
        return lock

    def backoff(self) -> Backoff:
        return Backoff(self.name)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have `close` wait for the caller. Raises StoreError once `close` was called."""
        if self._closed:
            raise self._closed_error()
        with self._counted():
            yield

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a request; while the store closes, those of operations in progress go on."""
        if self._closed and not self._in_use:
            raise self._closed_error()
        self._in_use += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()

    def _closed_error(self) -> StoreError:
        return StoreError(f"{self.name}: the store was closed; open it again")

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Call an operation of DynamoDB; errors of the client become those of this project."""
        with self._counted():
            try:
                client = await self._client.opened()
                answer: Mapping[str, Any] = await getattr(client, operation)(**parameters)
            except ERRORS as error:
                raise explain(error, self.name) from error
            return answer

    async def get(self, keys: Iterable[ItemKey]) -> dict[ItemKey, Item]:
        """Read the present items at these keys, missing ones left out."""
        wanted = list(dict.fromkeys(keys))
        found = await together(self._get_some(chunk) for chunk in chunks(wanted, READ))
        return {key_of(item): item for items in found for item in items}

    async def _get_some(self, keys: Collection[ItemKey]) -> list[Item]:
        table, found = self._address.table, list[Item]()
        if len(keys) == 1:
            [key] = keys
            answer = await self.call(
                "get_item", TableName=table, Key=encoded_key(key), ConsistentRead=True
            )
            return [decoded(answer["Item"])] if "Item" in answer else []
        asked: Any = {table: {"Keys": [encoded_key(key) for key in keys], "ConsistentRead": True}}
        backoff = self.backoff()
        while asked:
            answer = await self.call("batch_get_item", RequestItems=asked)
            found += map(decoded, answer["Responses"].get(table, []))
            if asked := answer.get("UnprocessedKeys"):
                await backoff.pause(THROTTLED)
        return found

    async def pages(
        self, partition: str, prefix: str = "", *, limit: int | None = None
    ) -> AsyncIterator[list[Item]]:
        """Yield the items of a partition whose sort keys begin with `prefix`, in their order.

        `limit` is the most items of a page.
        """
        parameters: dict[str, Any] = {
            "TableName": self._address.table,
            "ConsistentRead": True,
            "KeyConditionExpression": f"{PK} = :pk",
            "ExpressionAttributeValues": {":pk": {"S": partition}},
        }
        if prefix:
            parameters["KeyConditionExpression"] += f" AND begins_with({SK}, :prefix)"
            parameters["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
        if limit is not None:
            parameters["Limit"] = limit
        while True:
            answer = await self.call("query", **parameters)
            if items := answer["Items"]:
                yield [decoded(item) for item in items]
            if not (last := answer.get("LastEvaluatedKey")):
                return
            parameters["ExclusiveStartKey"] = last

    async def query(self, partition: str, prefix: str = "") -> list[Item]:
        """Read all items of a partition whose sort keys begin with `prefix`."""
        return [item async for page in self.pages(partition, prefix) for item in page]

    async def first(self, partition: str, most: int) -> list[Item]:
        """Read the `most` first items of a partition."""
        async for page in self.pages(partition, limit=most):
            return page
        return []

    async def write(self, items: Iterable[Item], deleted: Iterable[ItemKey] = ()) -> None:
        """Write and delete items, each by itself and whatever was there."""
        requests = [{"PutRequest": {"Item": encoded(item)}} for item in items]
        requests += [{"DeleteRequest": {"Key": encoded_key(key)}} for key in dict.fromkeys(deleted)]
        await together(self._write_some(chunk) for chunk in chunks(requests, WRITTEN))

    async def _write_some(self, requests: list[Any]) -> None:
        backoff = self.backoff()
        asked: Any = {self._address.table: requests}
        while True:
            answer = await self.call("batch_write_item", RequestItems=asked)
            if not (asked := answer.get("UnprocessedItems")):
                return
            await backoff.pause(THROTTLED)

    async def put(self, item: Item) -> None:
        """Write an item, whatever was there."""
        await self.call("put_item", TableName=self._address.table, Item=encoded(item))

    async def update(self, key: ItemKey, update: str, values: Item) -> None:
        """Update an item, whatever is there. Names in `update` begin with `#`."""
        transaction = self.transaction()
        transaction.update(key, update, values=values)
        await self.commit(transaction)

    async def commit(self, transaction: WriteTransaction) -> frozenset[ItemKey]:
        """Commit a transaction; returns the keys of items that were not as it expects.

        Nothing is written where there are any. The transaction waits while others change the same
        items. Raises StoreUnavailable if that takes too long.
        """
        backoff = self.backoff()
        while isinstance(refused := await self._try(transaction), str):
            await backoff.pause(refused)
        return refused

    async def _try(self, transaction: WriteTransaction) -> frozenset[ItemKey] | str:
        """Try to commit; returns the reason for people if another try may succeed."""
        with self._counted():
            try:
                await self._send(transaction)
            except ClientError as error:
                self.refused += 1
                answer = _refused(error, transaction) or _passing(error)
                if answer is None:
                    raise explain(error, self.name) from error
                return answer
            except ERRORS as error:
                raise explain(error, self.name) from error
            return frozenset()

    async def _send(self, transaction: WriteTransaction) -> None:
        client = await self._client.opened()
        if len(transaction) > 1:
            await client.transact_write_items(
                TransactItems=[{kind: action} for kind, action in transaction.actions],
                # The client's own tries repeat the token: an answer that was lost on its way has
                # its transaction applied once. Later repetitions meet the conditions instead.
                ClientRequestToken=uuid4().hex,
            )
            return
        [(kind, action)] = transaction.actions  # a write alone costs half
        operation = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}[kind]
        await getattr(client, operation)(**action)

    async def close(self) -> None:
        """Refuse new operations, wait for those in progress, and close the connections."""
        self._closed = True
        await wait_at_most(CLOSE_SECONDS, self._idle)
        await self._client.close()
        await self.bodies.close()


def _refused(error: ClientError, transaction: WriteTransaction) -> frozenset[ItemKey] | None:
    """Return the keys of items that were not as expected; None if that is not the reason."""
    if code_of(error) == "ConditionalCheckFailedException":
        return frozenset({transaction.key_at(0)})
    failed = {at for at, code in enumerate(_reasons(error)) if code == _FAILED}
    return frozenset(map(transaction.key_at, failed)) or None


def _passing(error: ClientError) -> str | None:
    """Return the reason for people if another try of the same writes may succeed."""
    reasons = {code for code in _reasons(error) if code and code != "None"} or {code_of(error)}
    if not reasons <= _CONFLICTS | _THROTTLINGS:
        return None
    return CONFLICT if reasons & _CONFLICTS else THROTTLED


def _reasons(error: ClientError) -> list[str | None]:
    return [reason.get("Code") for reason in error.response.get("CancellationReasons", [])]
