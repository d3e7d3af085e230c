"""A ticket in the waiting line of a limiter, and the permit that it is exchanged for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from socratic_bench.errors import ModelCallFailed, SocraticBenchError
from socratic_bench.ports.models import Reply
from socratic_runner.limits.ceilings import Charge
from socratic_runner.limits.pauses.pausing import Seen


class LimiterClosed(SocraticBenchError):
    """The runner drains and begins no more calls."""


class Learns(Protocol):
    """The limiter, as a permit sees it: it learns the outcome of each call."""

    def learn_of_reply(self, permit: Permit, reply: Reply) -> None: ...

    def learn_of_failure(self, permit: Permit, failure: ModelCallFailed) -> None: ...


@dataclass(slots=True, eq=False)
class WaitingCall:
    """A call that waits for its permit."""

    tokens: int
    admitted: asyncio.Future[Permit]
    near: asyncio.Event


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
    """A ticket holds a call's place in the waiting line of a limiter."""

    def __init__(self, waiting_call: WaitingCall) -> None:
        self._call = waiting_call

    @property
    def is_near(self) -> bool:
        """Whether `near` would return at once, without an error."""
        return self._call.near.is_set() and not self._call.admitted.cancelled()

    async def near(self) -> None:
        """Wait until the call should be prepared: its permit is there or, for a quick model, near.

        Raises LimiterClosed.
        """
        await self._call.near.wait()
        if self._call.admitted.cancelled():
            raise closed()

    async def permit(self, *, within: float | None = None) -> Permit:
        """Wait for the permit.

        Raises LimiterClosed, and TimeoutError after `within` seconds; the ticket stays valid then.
        """
        admitted = self._call.admitted
        if not admitted.done():
            await asyncio.wait([admitted], timeout=within)
        if admitted.cancelled():
            raise closed()
        if not admitted.done():
            raise TimeoutError
        return admitted.result()


def permit_of(waiting_call: WaitingCall) -> Permit | None:
    """The permit of a call; None while the call waits, or if the limiter closed before."""
    admitted = waiting_call.admitted
    return admitted.result() if admitted.done() and not admitted.cancelled() else None


def closed() -> LimiterClosed:
    """The error that a closed limiter raises for every waiting call."""
    return LimiterClosed("the runner is draining: no call is begun any more")
