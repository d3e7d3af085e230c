"""From a batch of deliveries to settlements, without a consumer: for workers and for functions.

A worker settles at its consumer as soon as it can. A function, which is called with a batch,
collects the settlements and reports every delivery without an Ack as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from socratic_bench.consuming.dispatch import Dispatcher, OnDecoded
from socratic_bench.consuming.publication import Publication, Publish
from socratic_bench.consuming.settlements import Settlement
from socratic_bench.ports.broker import Delivery

Settle = Callable[[Sequence[Settlement]], Awaitable[None]]


class BatchDispatcher:
    """Handles batches, publishes their outcomes, and only then settles their deliveries."""

    def __init__(
        self,
        publish: Publish,
        dispatcher: Dispatcher,
        *,
        on_drain: Callable[[], None] | None = None,
        on_resume: Callable[[], None] | None = None,
        longest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`on_drain` tells the handler to begin nothing new, and `on_resume` takes that back;
        `longest` gives the seconds that the handler may still need for the deliveries in hand.
        """
        self._publish = publish
        self._dispatcher = dispatcher
        self._on_drain = on_drain
        self._on_resume = on_resume
        self.longest = longest

    @property
    def waits_for(self) -> Exception | None:
        """Why some work waits for the store or the broker; None while none does."""
        return self._dispatcher.waits.error

    def drain(self) -> None:
        """Begin nothing new, and stop waiting for an unavailable store."""
        self._dispatcher.drain()
        if self._on_drain is not None:
            self._on_drain()

    def resume(self) -> None:
        """Begin new work again, after a drain."""
        self._dispatcher.resume()
        if self._on_resume is not None:
            self._on_resume()

    async def dispatch(
        self,
        deliveries: Sequence[Delivery],
        settle: Settle,
        on_decoded: OnDecoded = lambda _times: None,
    ) -> None:
        """Handle and publish; calls `settle` with settlements as soon as they are due.

        Cancelled, it leaves the rest unsettled. `on_decoded` and errors are those of
        `Dispatcher.dispatch`, the errors in an ExceptionGroup.
        """
        publication = Publication(
            self._publish, settle, self._dispatcher.waits, self._dispatcher.retry_policy
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publication.run())
            await self._dispatcher.dispatch(deliveries, publication.put, on_decoded)
            publication.end()

    async def settlements(self, deliveries: Sequence[Delivery]) -> Sequence[Settlement]:
        """Handle and publish a batch; returns the settlement of each delivery, in any order."""
        settlements: list[Settlement] = []

        async def collect(ready: Sequence[Settlement]) -> None:
            settlements.extend(ready)

        await self.dispatch(deliveries, collect)
        return settlements
