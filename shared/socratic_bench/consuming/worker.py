"""The consumer loop: takes deliveries from a queue, dispatches them, settles them."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Sequence,
)
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Literal

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.concurrency.retry_policy import AdaptivePause
from socratic_bench.consuming.dispatch import BatchDispatcher
from socratic_bench.consuming.outcomes import Ack, RetryLater, Settlement
from socratic_bench.errors import BrokerClosed, BrokerError, StoreError
from socratic_bench.ports.broker import Broker, Consumer, Delivery, WorkQueue

log = structlog.get_logger(__name__)

SettledAs = Literal["handled", "retried", "rejected", "returned"]
"""How messages left a worker. Returned messages were left unsettled or lost: the broker delivers
them again, to this worker or another."""


class Observer:
    """Hears of every message that a worker takes and settles. This one does nothing; all return at
    once.
    """

    def holding(self, queue: str, times: Iterable[datetime]) -> AbstractContextManager[None]:
        """Hold a batch whose events happened at these times while the context is open."""
        return nullcontext()

    def taken(self, queue: str, messages: int) -> None:
        """Note messages of a queue that the worker took in hand."""

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Note messages that left the worker `seconds` after it took them."""


GROUPS_SECONDS: Final = 1.0
"""Seconds between two queries for the groups of a queue; less if the consumer hears of one."""

# D-314: a third of a core, as for the embedded pipeline, made single runs wait.
BUSY_SERVICE: Final = 2 / 3
"""The share of a core from which a service is busy. The stages of an embedded pipeline share a
thread, and are busy earlier."""

FindGroups = Callable[[], Awaitable[Collection[str]]]


@dataclass(frozen=True, slots=True)
class Intake:
    """How many deliveries a worker takes."""

    batch: int = 500
    """The most deliveries in one batch."""

    batches: int = 1
    """The most batches in hand at the same time."""

    prefetch: int = 1_000
    """The most deliveries in hand."""

    # D-314: a pause in proportion to the last batch's duration made model calls dearer.
    longest_pause: float = 0.05
    """The most seconds from a batch that was not full to the next one; a process with little to do
    pauses less. Messages that arrive meanwhile enlarge the next batch, and a batch costs about the
    same for any size. The first batch never waits, and none waits after a suspect, which comes
    alone."""

    catch_up_seconds: float = 0.0
    """The most seconds from a full batch to the next one, unless half as many messages are settled
    earlier: for a handler that begins something for each message, and begins it late otherwise."""

    prefetch_per_group: int | None = None
    """The most deliveries of one group (model) in hand; None means as many as of all."""


class Worker:
    """Consumes one queue until it drains, or an error ends it for good."""

    def __init__(
        self,
        broker: Broker,
        queue: WorkQueue,
        dispatcher: BatchDispatcher,
        intake: Intake,
        *,
        groups: FindGroups | None = None,
        observer: Observer | None = None,
    ) -> None:
        """`groups` lists the groups of the queue for brokers that cannot list them."""
        self._broker = broker
        self._queue = queue
        self._dispatcher = dispatcher
        self._intake = intake
        self._groups = groups
        self._observer = observer or Observer()
        self._consumer: Consumer | None = None
        self._draining = False
        self._owed = 0.0
        """The messages to be settled before the batch after a full one is due."""

        self._caught_up = asyncio.Event()
        self._hurries = asyncio.Event()
        self._pause = AdaptivePause(intake.longest_pause, busy=BUSY_SERVICE)
        self._lasted = 0.0

    @property
    def queue(self) -> str:
        """The name of the worker's queue."""
        return self._queue.name

    @property
    def waits_for(self) -> Exception | None:
        """Why some of its work waits for the store or the broker; None while none does."""
        return self._dispatcher.waits_for

    def longest(self) -> float:
        """Seconds that the handler may still need for the deliveries in hand."""
        return self._dispatcher.longest()

    def drain(self) -> None:
        """Take no more deliveries, and begin nothing new with those in hand; `run` returns once
        they are settled.
        """
        self._dispatcher.drain()
        self.take_no_more()

    def take_no_more(self) -> None:
        """Take no more deliveries; `run` returns once those in hand are handled and settled."""
        self._draining = True
        self.hurry()
        if self._consumer is not None:
            self._consumer.drain()

    def hurry(self) -> None:
        """Pause no more after batches that are not full: nothing more is coming to gather."""
        self._hurries.set()

    async def run(self) -> None:
        """Consume. A cancelled worker returns the deliveries in hand to the queue.

        Raises an ExceptionGroup of the errors that ended it for good.
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
            async with self._serving_groups(consumer), asyncio.TaskGroup() as batches:
                while True:
                    await free.acquire()
                    deliveries = await consumer.receive(intake.batch)
                    if not deliveries:
                        return
                    batch = _Batch(consumer, self.queue, self._observer, len(deliveries))
                    task = batches.create_task(
                        self._dispatcher.dispatch(
                            deliveries, partial(self._settle, batch), batch.decoded
                        )
                    )
                    task.add_done_callback(partial(self._end, batch))
                    task.add_done_callback(lambda _: free.release())
                    await self._rest_after(deliveries)

    async def _rest_after(self, deliveries: Sequence[Delivery]) -> None:
        """Wait from this batch to the next one."""
        pause = self._pause.next(self._lasted)
        if deliveries[0].suspect:
            return
        if len(deliveries) < self._intake.batch:
            await wait_at_most(pause, self._hurries)
            return
        if not self._intake.catch_up_seconds:
            return
        self._owed = len(deliveries) / 2
        self._caught_up.clear()
        await wait_at_most(self._intake.catch_up_seconds, self._caught_up)

    async def _settle(self, batch: _Batch, settlements: Sequence[Settlement]) -> None:
        await batch.settle(settlements)
        self._owed -= len(settlements)
        if self._owed <= 0:
            self._caught_up.set()

    def _end(self, batch: _Batch, _task: asyncio.Task[None]) -> None:
        self._lasted = batch.end()

    @asynccontextmanager
    async def _serving_groups(self, consumer: Consumer) -> AsyncIterator[None]:
        """Keep the consumer informed of the queue's groups while the context is open."""
        if self._groups is None:
            yield
            return
        telling = asyncio.create_task(self._tell_groups(consumer, self._groups))
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.wait([telling])

    async def _tell_groups(self, consumer: Consumer, groups: FindGroups) -> None:
        while True:
            try:
                consumer.serve(await groups())
            except StoreError as error:
                log.debug("groups not found", queue=self.queue, reason=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(GROUPS_SECONDS):
                    await consumer.heard_of_group()


class _Batch:
    """Deliveries of one batch, until all are settled."""

    def __init__(self, consumer: Consumer, queue: str, observer: Observer, size: int) -> None:
        self._consumer = consumer
        self._queue = queue
        self._observer = observer
        self._in_hand = size
        self._taken_at = asyncio.get_running_loop().time()
        self._held = ExitStack()
        observer.taken(queue, size)

    def decoded(self, times: Iterable[datetime]) -> None:
        """Note the times at which the decoded events happened."""
        self._held.enter_context(self._observer.holding(self._queue, times))

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        done = [settlement.delivery for settlement in settlements if isinstance(settlement, Ack)]
        if done:
            await self._settle("handled", self._consumer.ack(done), len(done))
        if len(done) == len(settlements):
            return
        async with asyncio.TaskGroup() as others:
            for settlement in settlements:
                if isinstance(settlement, RetryLater):
                    others.create_task(self._settle("retried", self._retry(settlement)))
                elif not isinstance(settlement, Ack):
                    reject = self._consumer.reject(settlement.delivery, settlement.reason)
                    others.create_task(self._settle("rejected", reject))

    def end(self) -> float:
        """Count deliveries still in hand as returned to their queue.

        Returns the seconds that the batch took.
        """
        self._held.close()
        if self._in_hand:
            self._leave_hand("returned", self._in_hand)
        return asyncio.get_running_loop().time() - self._taken_at

    def _retry(self, settlement: RetryLater) -> Awaitable[None]:
        delivery, delay, reason = settlement.delivery, settlement.delay, settlement.reason
        return self._consumer.retry(delivery, delay, reason, counted=settlement.counted)

    async def _settle(
        self, outcome: SettledAs, settling: Awaitable[None], messages: int = 1
    ) -> None:
        try:
            await settling
        except BrokerClosed:
            raise
        except BrokerError as error:
            # The broker redelivers the message; handling it twice has the effect of once.
            log.info("not settled", queue=self._queue, messages=messages, reason=str(error))
            outcome = "returned"
        self._leave_hand(outcome, messages)

    def _leave_hand(self, outcome: SettledAs, messages: int) -> None:
        self._in_hand -= messages
        seconds = asyncio.get_running_loop().time() - self._taken_at
        self._observer.settled(self._queue, outcome, messages, seconds)
