"""Queues whose messages do not flow, which make a service unready."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.broker import Broker

LOOK_SECONDS: Final = 0.5

TOLERANCE_SECONDS: Final = 10.0
"""Seconds that a problem may last: a consumer needs a moment for a new queue."""


class QueueProblems:
    """Watches the result of `Broker.problems`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._since: dict[str, float] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        """Look every LOOK_SECONDS until `stop` is set."""
        while not stop.is_set():
            now = asyncio.get_running_loop().time()
            self._since = {each: self._since.get(each, now) for each in self._broker.problems()}
            await wait_at_most(LOOK_SECONDS, stop)

    async def until_none(self, patience: float) -> None:
        """Wait for the end of all problems, for at most `patience` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self._broker.problems():  # noqa: ASYNC110 - the broker signals no change
                    await asyncio.sleep(LOOK_SECONDS / 50)

    async def check(self) -> None:
        """Raise BrokerUnavailable while a problem lasts."""
        then = asyncio.get_running_loop().time() - TOLERANCE_SECONDS
        if lasting := [problem for problem, since in self._since.items() if since < then]:
            raise BrokerUnavailable("; ".join(lasting))
