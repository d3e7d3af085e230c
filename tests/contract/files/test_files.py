"""What the files port promises, in memory and over two emulators of S3 that other people wrote."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock
from uuid import uuid4

import httpx
import pytest
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from socratic_bench.adapters.aws import files as s3_files
from socratic_bench.adapters.aws.files import S3Files
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.files import SMALLEST_PART, Files, SavedAs, UploadGone
from tests.contract.files.memory_files import MemoryFiles
from tests.servers import aws_emulator, moto
from tests.servers.discovery import Server

NAME = SavedAs("exp-1-turns.csv", "text/csv; charset=utf-8")
EMULATORS = {"ministack": aws_emulator.SERVER, "moto": moto.SERVER}


@pytest.fixture(
    params=["memory", *(pytest.param(name, marks=pytest.mark.long) for name in EMULATORS)]
)
async def files(request: pytest.FixtureRequest) -> AsyncIterator[Files]:
    if request.param == "memory":
        yield MemoryFiles()
        return
    async with in_a_bucket(EMULATORS[request.param]) as files:
        yield files


@pytest.fixture
def key() -> str:
    return f"exports/{uuid4().hex}"


@pytest.fixture
async def s3(request: pytest.FixtureRequest) -> AsyncIterator[Files]:
    async with in_a_bucket(EMULATORS[request.param]) as files:
        yield files


@asynccontextmanager
async def in_a_bucket(server: Server) -> AsyncIterator[Files]:
    """Files in a bucket of their own."""
    endpoint = await asyncio.to_thread(server.address)
    bucket = f"socratic-test-{uuid4().hex[:16]}"
    with mock.patch.dict(os.environ, aws_emulator.credentials()):
        async with get_session().create_client("s3", endpoint_url=endpoint) as client:
            await client.create_bucket(Bucket=bucket)
            files = S3Files(bucket, endpoint=endpoint)
            try:
                yield files
            finally:
                await files.close()
                listed = await client.list_objects_v2(Bucket=bucket)
                for each in listed.get("Contents", []):
                    await client.delete_object(Bucket=bucket, Key=each["Key"])
                await client.delete_bucket(Bucket=bucket)


async def test_a_small_file_is_replaced_by_one_of_several_writers_alone(
    files: Files, key: str
) -> None:
    assert await files.read(key) is None
    first = await files.replace(key, b"first", None)
    assert first is not None
    assert await files.replace(key, b"late", None) is None
    second = await files.replace(key, b"second", first)
    assert second not in {None, first}
    assert await files.replace(key, b"late", first) is None
    assert await files.read(key) == (b"second", second)
    assert await files.replace(f"{key}-absent", b"late", first) is None


async def test_parts_become_a_file_in_their_order_and_the_last_writing_of_each_counts(
    files: Files, key: str
) -> None:
    first, last = b"a" * SMALLEST_PART, b"the end"
    upload = await files.begin_upload(key, NAME)
    await files.add_part(key, upload, 1, b"z" * SMALLEST_PART)
    parts = [await files.add_part(key, upload, 1, first)]
    assert await files.read(key) is None
    parts.append(await files.add_part(key, upload, 2, last))
    await files.finish_upload(key, upload, parts)

    found = await files.read(key)
    assert found is not None
    assert found.content == first + last


# moto answers 500 for a part of an upload that is gone, and not NoSuchUpload.
@pytest.mark.parametrize(
    "files", ["memory", pytest.param("ministack", marks=pytest.mark.long)], indirect=True
)
async def test_an_upload_that_is_gone_is_named(files: Files, key: str) -> None:
    upload = await files.begin_upload(key, NAME)
    part = await files.add_part(key, upload, 1, b"content")
    await files.finish_upload(key, upload, [part])
    with pytest.raises(UploadGone):
        await files.add_part(key, upload, 2, b"late")
    with pytest.raises(UploadGone):
        await files.finish_upload(f"{key}-other", upload, [part])


@pytest.mark.long
@pytest.mark.parametrize("s3", EMULATORS, indirect=True)
async def test_a_link_leads_anybody_to_the_file_under_its_name(s3: Files, key: str) -> None:
    whole, in_parts = key, f"{key}-parts"
    await s3.write(whole, b"content", NAME)
    upload = await s3.begin_upload(in_parts, NAME)
    part = await s3.add_part(in_parts, upload, 1, b"content")
    await s3.finish_upload(in_parts, upload, [part])

    async with httpx.AsyncClient() as client:
        for each in (whole, in_parts):
            address = await s3.link(each, 60)
            answer = await client.get(address)
            assert (answer.status_code, answer.content) == (200, b"content")
            assert answer.headers["content-type"] == NAME.media_type
            assert answer.headers["content-disposition"] == f'attachment; filename="{NAME.name}"'
            query = answer.url.params
            assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
            assert query["X-Amz-Expires"] == "60"


async def test_a_bucket_that_is_not_there_is_an_error_of_the_store(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = AioConfig(retries={"total_max_attempts": 1})
    monkeypatch.setattr(s3_files, "_CONFIG", s3_files._CONFIG.merge(once))
    files = S3Files("socratic-absent", region="us-east-1", endpoint="http://127.0.0.1:9")
    with mock.patch.dict(os.environ, aws_emulator.credentials()):
        for asked in (files.read(key), files.replace(key, b"", None), files.write(key, b"", NAME)):
            with pytest.raises(StoreUnavailable, match="s3://socratic-absent: S3 does not answer"):
                await asked
        await files.close()
