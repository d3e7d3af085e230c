"""The clients of AWS that a store uses, each opened on first use."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, Final

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import AioSession, get_session  # type: ignore[import-untyped]

from socratic_bench.adapters.stores.dynamodb.table.address import TableAddress

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
