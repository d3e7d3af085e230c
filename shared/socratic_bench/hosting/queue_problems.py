"""Queues whose messages do not flow: what makes a service unready."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.broker import Broker

LOOK_SECONDS: Final = 0.5

TOLERANCE_SECONDS: Final = 10.0
"""A queue may be out of order for so long: a new one is consumed a moment after it was found."""


class QueueProblems:
    """Watches what `Broker.problems` says."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._since: dict[str, float] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        """Look again and again until `stop` is set."""
        while not stop.is_set():
            now = asyncio.get_running_loop().time()
            self._since = {each: self._since.get(each, now) for each in self._broker.problems()}
            await wait_at_most(LOOK_SECONDS, stop)

    async def until_none(self, patience: float) -> None:
        """Wait until there is no problem, for `patience` seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self._broker.problems():  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(LOOK_SECONDS / 50)

    async def check(self) -> None:
        """Raise BrokerUnavailable while there is a problem that lasts."""
        then = asyncio.get_running_loop().time() - TOLERANCE_SECONDS
        if lasting := [problem for problem, since in self._since.items() if since < then]:
            raise BrokerUnavailable("; ".join(lasting))
