"""Files in a bucket of S3, uploaded in parts and fetched by signed links."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from socratic_bench.errors import StoreError, StoreUnavailable
from socratic_bench.ports.files import Files, SavedAs, UploadGone, Versioned

_CONFIG: Final = AioConfig(
    connect_timeout=5,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 4},
    # With checksums of the client, the end of an upload would have to list one for each part; S3
    # makes its own.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
    # The older signature, which botocore prefers for links, is refused by newer regions.
    signature_version="s3v4",
)
_ABSENT: Final = frozenset({"AccessDenied", "NoSuchKey"})
"""S3 answers AccessDenied for what is not there to a role that may list nothing."""

_CHANGED: Final = frozenset({"ConditionalRequestConflict", "NoSuchKey", "PreconditionFailed"})


class S3Files(Files):
    """Files in one bucket. It connects on first use, and closes after the last one."""

    def __init__(
        self, bucket: str, *, region: str | None = None, endpoint: str | None = None
    ) -> None:
        """Without a region or an endpoint, those of the environment hold."""
        self._bucket = bucket
        self._region = region
        self._endpoint = endpoint
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None

    async def read(self, key: str) -> Versioned | None:
        try:
            answer = await self._call("get_object", Key=key)
            async with answer["Body"] as body:
                content: bytes = await body.read()
        except ClientError as error:
            if _code_of(error) in _ABSENT:
                return None
            raise self._explained(error) from error
        except (BotoCoreError, HttpError, OSError) as error:
            raise self._explained(error) from error
        return Versioned(content, answer["ETag"])

    async def replace(self, key: str, content: bytes, etag: str | None) -> str | None:
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            answer = await self._call("put_object", Key=key, Body=content, **condition)
        except ClientError as error:
            if _code_of(error) in _CHANGED:
                return None
            raise self._explained(error) from error
        new: str = answer["ETag"]
        return new

    async def write(self, key: str, content: bytes, saved_as: SavedAs) -> None:
        await self._asked("put_object", Key=key, Body=content, **_headers(saved_as))

    async def begin_upload(self, key: str, saved_as: SavedAs) -> str:
        answer = await self._asked("create_multipart_upload", Key=key, **_headers(saved_as))
        upload: str = answer["UploadId"]
        return upload

    async def add_part(self, key: str, upload: str, number: int, content: bytes) -> str:
        answer = await self._asked(
            "upload_part", Key=key, UploadId=upload, PartNumber=number, Body=content
        )
        etag: str = answer["ETag"]
        return etag

    async def finish_upload(self, key: str, upload: str, parts: Sequence[str]) -> None:
        listed = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(parts, 1)]
        await self._asked(
            "complete_multipart_upload",
            Key=key,
            UploadId=upload,
            MultipartUpload={"Parts": listed},
        )

    async def link(self, key: str, seconds: int) -> str:
        client = await self._opened()
        address: str = await client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=seconds
        )
        return address

    async def close(self) -> None:
        self._client = None
        await self._open.aclose()

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await self._open.enter_async_context(
                    get_session().create_client(
                        "s3",
                        region_name=self._region,
                        endpoint_url=self._endpoint,
                        config=_CONFIG,
                    )
                )
        return self._client

    async def _asked(self, operation: str, **parameters: Any) -> Any:
        try:
            return await self._call(operation, **parameters)
        except ClientError as error:
            raise self._explained(error) from error

    async def _call(self, operation: str, **parameters: Any) -> Any:
        """Raises the client's own error where S3 answers with one."""
        client = await self._opened()
        try:
            return await getattr(client, operation)(Bucket=self._bucket, **parameters)
        except (BotoCoreError, HttpError, OSError) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> StoreError:
        """Return this project's error for one of the client's."""
        name = f"s3://{self._bucket}"
        if not isinstance(error, ClientError):
            return StoreUnavailable(f"{name}: S3 does not answer; try again later ({error})")
        if _code_of(error) == "NoSuchUpload":
            return UploadGone(f"{name}: the upload is gone; the file has to be written anew")
        return StoreUnavailable(f"{name}: S3 refuses a request; it says: {error}")


def _code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _headers(saved_as: SavedAs) -> dict[str, str]:
    return {
        "ContentType": saved_as.media_type,
        "ContentDisposition": f'attachment; filename="{saved_as.name}"',
    }
