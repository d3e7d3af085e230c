"""The records that are too large for an item: objects in a bucket, which items name.

An object is written before its item. If that is never written, the object stays in the bucket until
the bucket's lifecycle removes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from socratic_bench.adapters.stores.dynamodb.table.address import TableAddress
from socratic_bench.adapters.stores.dynamodb.table.batches import together
from socratic_bench.adapters.stores.dynamodb.table.clients import Client
from socratic_bench.adapters.stores.dynamodb.table.errors import ERRORS, code_of, explain
from socratic_bench.errors import StoreRefused


class Bodies:
    """The objects of a store, in the bucket that its address names."""

    def __init__(self, address: TableAddress) -> None:
        self._bucket = address.bucket
        self._name = f"s3://{address.bucket}"
        self._table = address.name
        self._client = Client("s3", address)

    async def put(self, place: str, content: bytes) -> str:
        """Write a record; returns the key of its object, which begins with `place`.

        Raises StoreRefused without a bucket.
        """
        if self._bucket is None:
            raise StoreRefused(
                f"{self._table}: the record of {place} takes {len(content):,} bytes, more than "
                "an item holds; add ?bucket=… to the address, for such records"
            )
        key = f"{place}/{hashlib.sha256(content).hexdigest()[:32]}"
        await self._call("put_object", Key=key, Body=content)
        return key

    async def get(self, key: str) -> bytes:
        """Read a record; an object that is gone is empty."""
        try:
            answer = await self._call("get_object", Key=key)
            content: bytes = await answer["Body"].read()
        except ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) == "NoSuchKey":
                return b""
            raise explain(error, self._name) from error
        return content

    async def delete(self, keys: Iterable[str]) -> None:
        await together(self._call("delete_object", Key=key) for key in keys)

    async def close(self) -> None:
        await self._client.close()

    async def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            client = await self._client.opened()
            return await getattr(client, operation)(Bucket=self._bucket, **parameters)
        except ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) == "NoSuchKey":
                raise
            raise explain(error, self._name) from error
