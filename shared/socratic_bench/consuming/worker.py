"""The consumer loop: takes deliveries from a queue, dispatches them, settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from socratic_bench.consuming.dispatch import Ack, Dispatcher, RetryLater, Settlement
from socratic_bench.ports.broker import Broker, Consumer, Delivery, WorkQueue


@dataclass(frozen=True, slots=True)
class Intake:
    """How much a worker takes at a time."""

    batch: int = 500
    """Deliveries handed to the handler at once, at most."""

    batches: int = 1
    """Batches in hand at the same time, at most."""

    prefetch: int = 1_000
    """Deliveries in hand in all, at most."""

    pause: float = 0.02
    """Seconds from one batch to the next unless it was full: what comes meanwhile makes the next
    one bigger, and a batch costs about the same whatever its size. The first never waits."""

    prefetch_per_group: int | None = None
    """Of one group (model), at most; None: as many as of all."""


class Worker:
    """Consumes one queue until it is told to drain, or something breaks for good."""

    def __init__(
        self,
        broker: Broker,
        queue: WorkQueue,
        dispatcher: Dispatcher,
        intake: Intake,
        *,
        on_drain: Callable[[], None] | None = None,
    ) -> None:
        """`on_drain` tells the handler that nothing new should be begun."""
        self._broker = broker
        self._queue = queue
        self._dispatcher = dispatcher
        self._intake = intake
        self._on_drain = on_drain
        self._consumer: Consumer | None = None
        self._draining = False

    def drain(self) -> None:
        """Take no more; `run` returns once what is in hand is settled."""
        self._draining = True
        if self._on_drain is not None:
            self._on_drain()
        if self._consumer is not None:
            self._consumer.drain()

    async def run(self) -> None:
        """Consume. Cancelled, it gives back what is in hand.

        Raises an ExceptionGroup of what broke for good.
        """
        intake = self._intake
        async with self._broker.consume(
            self._queue.name,
            prefetch=intake.prefetch,
            prefetch_per_group=intake.prefetch_per_group,
        ) as consumer:
            self._consumer = consumer
            if self._draining:
                return
            free = asyncio.Semaphore(intake.batches)
            async with asyncio.TaskGroup() as batches:
                while True:
                    await free.acquire()
                    deliveries = await consumer.receive(intake.batch)
                    if not deliveries:
                        return
                    batch = batches.create_task(self._process(consumer, deliveries))
                    batch.add_done_callback(lambda _: free.release())
                    if len(deliveries) < intake.batch:
                        await asyncio.sleep(intake.pause)

    async def _process(self, consumer: Consumer, deliveries: Sequence[Delivery]) -> None:
        async with aclosing(self._dispatcher.dispatch(deliveries)) as settled:
            async for settlements in settled:
                await _settle(consumer, settlements)


async def _settle(consumer: Consumer, settlements: Sequence[Settlement]) -> None:
    done = [settlement.delivery for settlement in settlements if isinstance(settlement, Ack)]
    if done:
        await consumer.ack(done)
    for settlement in settlements:
        if isinstance(settlement, RetryLater):
            await consumer.retry(settlement.delivery, settlement.delay, settlement.reason)
        elif not isinstance(settlement, Ack):
            await consumer.reject(settlement.delivery, settlement.reason)
