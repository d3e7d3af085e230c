"""A ticket in the waiting line of a limiter, and the permit that it is exchanged for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Protocol

from socratic_bench.domain.run import NORMAL, Priority
from socratic_bench.errors import ModelCallFailed, SocraticBenchError
from socratic_bench.ports.models import Reply
from socratic_runner.limits.ceilings import Charge
from socratic_runner.limits.pausing import Seen


class LimiterClosed(SocraticBenchError):
    """The runner drains and begins no more calls."""


class Learns(Protocol):
    """The limiter, as a permit sees it: it learns the outcome of each call."""

    def learn_of_reply(self, permit: Permit, reply: Reply) -> None: ...

    def learn_of_failure(self, permit: Permit, failure: ModelCallFailed) -> None: ...


@dataclass(slots=True, eq=False)
class WaitingCall:
    """A call in a waiting line: it waits to be near its permit, and for the permit."""

    tokens: int
    priority: Priority = NORMAL
    permit: Permit | None = None
    is_near: bool = False
    """Whether the call should be prepared, or look at its line again."""

    is_refused: bool = False
    """Whether its limiter closed before it had a permit."""

    _waiter: asyncio.Future[None] | None = None

    def admit(self, permit: Permit) -> None:
        self.permit = permit
        self.come_near()

    def refuse(self) -> None:
        self.is_refused = True
        self.come_near()

    def come_near(self) -> None:
        self.is_near = True
        if self._waiter is not None:
            wake(self._waiter)

    async def change(self, until: float | None = None) -> None:
        """Wait for one of these, until a time of the loop at most."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if until is None else loop.call_at(until, wake, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


class WaitingCalls:
    """The waiting line of a limiter: calls of both priorities in turn, each first come, first
    served.
    """

    def __init__(self) -> None:
        self._lines: dict[Priority, deque[WaitingCall]] = {"high": deque(), "normal": deque()}
        """The lines, the one whose turn it is first."""

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[WaitingCall]:
        """The calls in the order of their turns."""
        turns = chain.from_iterable(zip_longest(*self._lines.values()))
        return (call for call in turns if call is not None)

    def ahead_of(self, call: WaitingCall) -> int:
        """Count the calls of its own priority that came before this one, the last to come."""
        return len(self._lines[call.priority]) - 1

    def append(self, call: WaitingCall) -> None:
        self._lines[call.priority].append(call)

    def first(self) -> WaitingCall:
        """Return the call whose turn it is."""
        return next(iter(self))

    def take(self) -> WaitingCall:
        """Remove and return the call whose turn it is; the turn goes to the other priority."""
        call = self.first()
        line = self._lines.pop(call.priority)
        line.popleft()
        self._lines[call.priority] = line
        return call

    def remove(self, call: WaitingCall) -> None:
        """Remove a call that waits no longer."""
        self._lines[call.priority].remove(call)


class Permit:
    """A call holds a permit while it is in flight. It reports its outcome once, or not at all."""

    def __init__(self, limiter: Learns, call: int, charge: Charge, seen: Seen) -> None:
        self._limiter = limiter
        self.call = call
        self.charge = charge
        self.seen = seen
        self.has_outcome = False

    def replied(self, reply: Reply) -> None:
        """The model replied: the limit learns from the reply, and the charge is corrected."""
        self.has_outcome = True
        self._limiter.learn_of_reply(self, reply)

    def failed(self, failure: ModelCallFailed) -> None:
        """The call failed.

        A busy provider or a timeout lowers the limit, and a busy provider pauses the limiter for
        all calls. The tokens are refunded unless the model may have written something.
        """
        self.has_outcome = True
        self._limiter.learn_of_failure(self, failure)


class Ticket:
    """A ticket holds a call's place in the waiting line of a limiter.

    One task at a time waits for `near` or `permit`.
    """

    def __init__(self, waiting_call: WaitingCall) -> None:
        self._call = waiting_call

    @property
    def is_near(self) -> bool:
        """Whether `near` would return at once, without an error."""
        return self._call.is_near and not self._call.is_refused

    async def near(self) -> None:
        """Wait until the call should be prepared: its permit is there or, for a quick model, near.

        Raises LimiterClosed.
        """
        while not self._call.is_near:
            await self._call.change()
        if self._call.is_refused:
            raise closed()

    async def permit(self, *, within: float | None = None) -> Permit:
        """Wait for the permit.

        Raises LimiterClosed, and TimeoutError after `within` seconds; the ticket stays valid then.
        """
        now = asyncio.get_running_loop().time
        until = None if within is None else now() + within
        while self._call.permit is None:
            if self._call.is_refused:
                raise closed()
            if until is not None and now() >= until:
                raise TimeoutError
            await self._call.change(until)
        return self._call.permit


def wake(waiter: asyncio.Future[None]) -> None:
    """End a wait, unless it has ended."""
    if not waiter.done():
        waiter.set_result(None)


def closed() -> LimiterClosed:
    """The error that a closed limiter raises for every waiting call."""
    return LimiterClosed("the runner is draining: no call is begun any more")
