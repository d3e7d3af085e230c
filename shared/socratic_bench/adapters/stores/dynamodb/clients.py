"""Requests to AWS: the address of a table, the clients, large records in a bucket, and errors."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import AioSession, get_session  # type: ignore[import-untyped]
from aiohttp import ClientError as HttpError
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from socratic_bench.errors import (
    InvalidSettings,
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)

FORM: Final = "dynamodb://table, or dynamodb://table?region=eu-central-1&endpoint=http://host:port"

_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_OPTIONS: Final = frozenset({"region", "endpoint", "bucket"})


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table's name and place. Credentials come from where every AWS client looks for them."""

    table: str
    region: str | None = None
    """None: the region of the environment."""

    endpoint: str | None = None
    """The address of an emulator, or of a private endpoint; None: that of the environment, or
    AWS."""

    bucket: str | None = None
    """The bucket of records that are too large for an item; None: they are refused."""

    @property
    def name(self) -> str:
        """The table for people."""
        return f"dynamodb://{self.table}"


def parse(url: str) -> TableAddress:
    """Parse `dynamodb://table?region=…&endpoint=…&bucket=…`.

    Raises InvalidSettings for another form.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.path.strip("/") or parts.fragment or not _TABLE.fullmatch(parts.netloc):
        raise InvalidSettings(
            f"the store's address names no table: give {FORM}; AWS credentials stand in the "
            "environment, not in the address"
        )
    if unknown := sorted(options.keys() - _OPTIONS):
        raise InvalidSettings(f"the store's address has the unknown option {unknown[0]}: {FORM}")
    return TableAddress(
        parts.netloc, options.get("region"), options.get("endpoint"), options.get("bucket")
    )


READ: Final = 100
"""The most keys of one BatchGetItem."""

WRITTEN: Final = 25
"""The most items of one BatchWriteItem."""

Each = TypeVar("Each")


def chunks(items: Iterable[Each], size: int) -> Iterator[list[Each]]:
    """Yield `items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


async def together(work: Iterable[Awaitable[Each]]) -> list[Each]:
    """Await all of `work`; an error cancels the rest, and is raised once that has ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


CONNECTIONS: Final = 32
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
TRIES: Final = 5
"""The client's tries of a request that is throttled or gets no answer, each with the same token."""


@cache
def aws_session() -> AioSession:
    """Return the session of this process: it reads the description of an API once."""
    return get_session()


class Client:
    """One client of a service of AWS."""

    def __init__(self, service: str, address: TableAddress) -> None:
        self._service = service
        self._address = address
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None

    async def opened(self) -> Any:
        """Return the client of aiobotocore, which connects when it is first used."""
        async with self._opening:
            if self._client is None:
                self._client = await self._open.enter_async_context(
                    aws_session().create_client(
                        self._service,
                        region_name=self._address.region,
                        endpoint_url=self._address.endpoint,
                        config=AioConfig(
                            connect_timeout=CONNECT_SECONDS,
                            read_timeout=READ_SECONDS,
                            max_pool_connections=CONNECTIONS,
                            # This adapter alone makes the requests; checking each costs as
                            # much as sending it.
                            parameter_validation=False,
                            retries={"mode": "standard", "total_max_attempts": TRIES},
                        ),
                    )
                )
        return self._client

    async def close(self) -> None:
        self._client = None
        await self._open.aclose()


ERRORS: Final = (BotoCoreError, ClientError, HttpError, OSError)
"""The client's errors."""

_AGAIN = "try again later"
_CREDENTIALS = "AWS refuses the credentials; check those of the environment, or of the role"
_THROTTLED = f"the table takes no more requests for now; {_AGAIN}, or raise its capacity"
_CONFLICT = f"other writers changed the same items for too long; {_AGAIN}"

_SENTENCES: Final[Mapping[str, tuple[type[StoreError], str]]] = {
    "ResourceNotFoundException": (StoreBroken, "there is no such table; the deployment makes it"),
    "AccessDeniedException": (
        StoreNotWritable,
        "these credentials lack a right on the table; grant it to the role",
    ),
    "AccessDenied": (StoreNotWritable, "these credentials lack a right on the bucket; grant it"),
    "NoSuchBucket": (StoreBroken, "there is no such bucket; the deployment makes it"),
    "UnrecognizedClientException": (StoreNotWritable, _CREDENTIALS),
    "InvalidSignatureException": (StoreNotWritable, _CREDENTIALS),
    "ExpiredTokenException": (StoreNotWritable, _CREDENTIALS),
    "ItemCollectionSizeLimitExceededException": (StoreRefused, "a partition is full"),
    "ValidationException": (StoreRefused, "it cannot hold a given value"),
    "TransactionCanceledException": (StoreUnavailable, _CONFLICT),
    "TransactionConflictException": (StoreUnavailable, _CONFLICT),
    "TransactionInProgressException": (StoreUnavailable, _CONFLICT),
    "ProvisionedThroughputExceededException": (StoreUnavailable, _THROTTLED),
    "RequestLimitExceeded": (StoreUnavailable, _THROTTLED),
    "ThrottlingException": (StoreUnavailable, _THROTTLED),
    "LimitExceededException": (StoreUnavailable, _THROTTLED),
    "ResourceInUseException": (StoreUnavailable, f"the table is being changed; {_AGAIN}"),
    "InternalServerError": (StoreUnavailable, f"DynamoDB has a failure; {_AGAIN}"),
    "ServiceUnavailable": (StoreUnavailable, f"DynamoDB has a failure; {_AGAIN}"),
}


def explain(error: Exception, name: str) -> StoreError:
    """Return this project's error for `error` of the table `name`."""
    match error:
        case ClientError():
            return _explain_answer(error, name)
        case NoCredentialsError() | PartialCredentialsError():
            return StoreBroken(f"{name}: there are no AWS credentials in the environment: {error}")
        case NoRegionError():
            return StoreBroken(
                f"{name}: no region is known; set AWS_REGION, or add ?region=… to the address"
            )
        case _:
            return StoreUnavailable(f"{name}: DynamoDB does not answer; {_AGAIN} ({error})")


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _explain_answer(error: ClientError, name: str) -> StoreError:
    answer = error.response.get("Error", {})
    said = f"AWS says: {answer.get('Message', error)}"
    if known := _SENTENCES.get(code_of(error)):
        kind, sentence = known
        return kind(f"{name}: {sentence} ({said})")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = StoreUnavailable if status >= 500 else StoreError
    return kind(f"{name}: {said}")


class Bodies:
    """The records that are too large for an item: objects in a bucket, which items name.

    An object is written before its item. If that is never written, the object stays in the bucket
    until the bucket's lifecycle removes it.
    """

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
