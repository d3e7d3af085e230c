"""DynamoDB for tests: a table of its own for each of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock
from urllib.parse import quote
from uuid import uuid4

from socratic_bench.adapters.stores.dynamodb.clients import aws_session, parse
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from tests.servers import aws_emulator
from tests.servers.discovery import Server


class ScanForbidden(AssertionError):
    """A query reads one partition; a scan reads every run of every experiment."""


def _forbid_scans() -> None:
    """Have every client that is made from now on refuse to scan."""

    def refuse(**_: Any) -> None:
        raise ScanForbidden("no method of the store may scan its table")

    aws_session().register("before-parameter-build.dynamodb.Scan", refuse, unique_id="no scan")


@asynccontextmanager
async def new_table(server: Server = aws_emulator.SERVER) -> AsyncIterator[str]:
    """The address of a table that `prepare` makes; dropped afterwards."""
    _forbid_scans()
    endpoint = await asyncio.to_thread(server.address)
    name = f"socratic-test-{uuid4().hex[:16]}"
    url = f"dynamodb://{name}?endpoint={quote(endpoint, safe='')}"
    with mock.patch.dict(os.environ, aws_emulator.credentials()):
        yield url
        table = DynamoTable(parse(url))
        await table.call("delete_table", TableName=name)
        await table.close()


@asynccontextmanager
async def new_bucket() -> AsyncIterator[str]:
    """The name of an empty bucket; deleted afterwards, if it is empty again."""
    name = f"socratic-test-{uuid4().hex[:16]}"
    async with _s3() as client:
        await client.create_bucket(Bucket=name)
        yield name
        await client.delete_bucket(Bucket=name)


async def objects(bucket: str) -> list[str]:
    """The keys of the objects in a bucket."""
    async with _s3() as client:
        listed = await client.list_objects_v2(Bucket=bucket)
    return [each["Key"] for each in listed.get("Contents", [])]


def _s3() -> Any:
    return aws_session().create_client("s3", endpoint_url=aws_emulator.SERVER.address())
