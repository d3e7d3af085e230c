"""The way from a process to a server: a request takes time, and goes on if its process does not.

A request has three moments: the process sends it, the server does it, the process gets the answer.
A fault may come between any two of them, so a kill leaves requests of which nobody knows whether
they were done.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.simulation.chaos.loop import SimulatedLoop, at_once, context_of

Result = TypeVar("Result")

WORLD = context_of("")
QUICK = (0.0005, 0.02)
"""Seconds that a message takes from a process to a server, or back."""


class Wire:
    """The connection of one process to one server."""

    def __init__(
        self,
        process: str,
        server: str,
        chance: random.Random,
        note: Callable[[str, str], None] | None,
    ) -> None:
        self._name = f"{process} to {server}"
        self._chance = chance
        self._note = note
        self._loop: SimulatedLoop = asyncio.get_running_loop()  # type: ignore[assignment]
        self._under_way: dict[asyncio.Future[Any], asyncio.Handle | asyncio.Task[Any]] = {}
        self.slowness = 1.0
        self.is_cut = False
        self.on_request: list[Callable[[str], None]] = []
        """Hear of each request as the process sends it, and again as the server has done it."""

    @property
    def delay(self) -> float:
        """The seconds of the next message."""
        shortest, longest = QUICK
        return self.slowness * (shortest + (longest - shortest) * self._chance.random())

    async def ask(self, what: str, do: Callable[[], Awaitable[Result]]) -> Result:
        """Have a server do something that takes it no time."""
        return await self._send(what, self._do_at_once, do)

    async def ask_patiently(self, what: str, do: Callable[[], Awaitable[Result]]) -> Result:
        """Have a server do something that may take it any time."""
        return await self._send(what, self._begin, do)

    def cut(self) -> None:
        """End the connection for good: half of the requests under way are not done any more.

        Nobody hears an answer, and the process can send nothing more.
        """
        self.is_cut = True
        under_way, self._under_way = self._under_way, {}
        for work in under_way.values():
            if self._chance.random() < 0.5:
                work.cancel()

    async def _send(
        self,
        what: str,
        arrive: Callable[..., None],
        do: Callable[[], Awaitable[Result]],
    ) -> Result:
        if self.is_cut:
            # The process was killed, and its tasks unwind.
            raise asyncio.CancelledError
        if self._note is not None:
            self._note(self._name, what)
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._under_way[answer] = self._loop.call_later(
            self.delay, arrive, what, do, answer, context=WORLD
        )
        for hear in self.on_request:
            hear(f"{what} sent")
        return await answer

    def _do_at_once(
        self, what: str, do: Callable[[], Awaitable[Result]], answer: asyncio.Future[Any]
    ) -> None:
        try:
            result, error = at_once(do()), None
        except Exception as raised:  # noqa: BLE001 - it is the server's answer
            result, error = None, raised
        self._reply(what, answer, result, error)

    def _begin(
        self, what: str, do: Callable[[], Awaitable[Result]], answer: asyncio.Future[Any]
    ) -> None:
        async def work() -> None:
            try:
                result, error = await do(), None
            except Exception as raised:  # noqa: BLE001 - it is the server's answer
                result, error = None, raised
            self._reply(what, answer, result, error)

        task = self._loop.create_task(work(), context=WORLD)
        if answer in self._under_way:
            self._under_way[answer] = task

    def _reply(
        self, what: str, answer: asyncio.Future[Any], result: Any, error: Exception | None
    ) -> None:
        for hear in self.on_request:
            hear(f"{what} done")
        if self._under_way.pop(answer, None) is not None:
            self._loop.call_later(self.delay, _give, answer, result, error, context=WORLD)


def _give(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    """Hand over an answer, unless nobody waits for it any more."""
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
        answer.exception()  # nobody may look, and that is no fault
