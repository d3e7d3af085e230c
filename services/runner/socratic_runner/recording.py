"""Storing responses for as long as that takes: each was asked for, and perhaps paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.response import Response
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.store import Store

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PatientRecord:
    """Stores responses; while the store is away, tries again and again until it is given up.

    To let go of a response would be to ask, and to pay, for it a second time.
    """

    store: Store
    retry_policy: RetryPolicy
    _given_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, responses: Sequence[Response]) -> Sequence[Response]:
        """What `Store.record` says. Raises StoreUnavailable only after `give_up`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self.store.record(responses)
            except StoreUnavailable as error:
                if self._given_up.is_set():
                    raise
                told = log.warning if attempt == 1 else log.debug
                told("responses wait", responses=len(responses), reason=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(self.retry_policy.delay(attempt)):
                    await self._given_up.wait()

    def give_up(self) -> None:
        """Try once more what is being stored, and from now on only once."""
        self._given_up.set()
