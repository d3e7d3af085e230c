"""Reads what an operator keeps in AWS: an object of S3, a parameter, a secret."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from socratic_bench.errors import InvalidSettings

LARGEST: Final = 1_000_000
"""Bytes of an object at most."""

_CONFIG: Final = AioConfig(
    connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4}
)


async def read_object(url: str) -> str:
    """Return the text of the object at `s3://bucket/key`. Raises InvalidSettings."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise InvalidSettings(f"{url!r} is no object of S3, such as s3://bucket/key")
    async with _asking(url), _client("s3") as client:
        answer = await client.get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))
        async with answer["Body"] as body:
            content: bytes = await body.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InvalidSettings(f"{url} has more than {LARGEST:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidSettings(f"{url} is not UTF-8 text") from None


async def read_parameter(name: str) -> str:
    """Return a parameter of Systems Manager, decrypted. Raises InvalidSettings."""
    async with _asking(f"parameter {name}"), _client("ssm") as client:
        answer = await client.get_parameter(Name=name, WithDecryption=True)
    return str(answer["Parameter"]["Value"])


async def read_secret(name: str) -> str:
    """Return the text of a secret of Secrets Manager. Raises InvalidSettings."""
    async with _asking(f"secret {name}"), _client("secretsmanager") as client:
        answer = await client.get_secret_value(SecretId=name)
    return str(answer["SecretString"])


def _client(service: str) -> Any:
    return get_session().create_client(service, config=_CONFIG)


@asynccontextmanager
async def _asking(what: str) -> AsyncIterator[None]:
    """Turn AWS's errors into one that names what was asked for, and never its content."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown error")
        raise InvalidSettings(f"cannot read {what}: AWS answers {code}") from None
    except (BotoCoreError, TimeoutError) as error:
        raise InvalidSettings(f"cannot read {what}: {type(error).__name__}") from None
