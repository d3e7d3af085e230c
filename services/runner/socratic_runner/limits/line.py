"""The line before the gate of a model: a place in it, and what is given at its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from socratic_bench.errors import ModelCallFailed, SocraticBenchError
from socratic_bench.ports.models import Reply
from socratic_runner.limits.ceilings import Toll
from socratic_runner.limits.pausing import Seen


class GateClosed(SocraticBenchError):
    """The runner is draining: no call is begun any more."""


class Learns(Protocol):
    """What is told of the outcome of a call: its gate."""

    def learn_of_reply(self, passage: Passage, reply: Reply) -> None: ...

    def learn_of_failure(self, passage: Passage, failure: ModelCallFailed) -> None: ...


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits before a gate."""

    tokens: int
    admitted: asyncio.Future[Passage]
    near: asyncio.Event


class Passage:
    """What a call holds while it is under way. Its outcome is told once, or not at all."""

    def __init__(self, gate: Learns, call: int, toll: Toll, seen: Seen) -> None:
        self._gate = gate
        self.call = call
        self.toll = toll
        self.seen = seen
        self.has_outcome = False

    def replied(self, reply: Reply) -> None:
        """The model answered: the limit learns from it, and the tokens are put right."""
        self.has_outcome = True
        self._gate.learn_of_reply(self, reply)

    def failed(self, failure: ModelCallFailed) -> None:
        """The call failed. A busy provider and a timeout lower the limit, and a busy one pauses the
        gate for everybody. Tokens are given back unless the model may have written something.
        """
        self.has_outcome = True
        self._gate.learn_of_failure(self, failure)


class Place:
    """A place in the line before a gate."""

    def __init__(self, waiter: Waiter) -> None:
        self._waiter = waiter

    @property
    def is_near(self) -> bool:
        """Whether there is nothing to wait for with `near`, not even an error."""
        return self._waiter.near.is_set() and not self._waiter.admitted.cancelled()

    async def near(self) -> None:
        """Wait until the call is to be prepared: it may be made now or, with a quick model, soon.

        Raises GateClosed.
        """
        await self._waiter.near.wait()
        if self._waiter.admitted.cancelled():
            raise closed()

    async def passage(self, *, within: float | None = None) -> Passage:
        """Wait to be let through. Raises GateClosed, and TimeoutError after so many seconds; the
        place is kept then.
        """
        admitted = self._waiter.admitted
        if not admitted.done():
            await asyncio.wait([admitted], timeout=within)
        if admitted.cancelled():
            raise closed()
        if not admitted.done():
            raise TimeoutError
        return admitted.result()


def passage_of(waiter: Waiter) -> Passage | None:
    """What somebody was given who was let through."""
    admitted = waiter.admitted
    return admitted.result() if admitted.done() and not admitted.cancelled() else None


def closed() -> GateClosed:
    """What everybody gets who waits before a closed gate."""
    return GateClosed("the runner is draining: no call is begun any more")
