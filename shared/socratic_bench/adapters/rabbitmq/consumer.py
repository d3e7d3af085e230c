"""One consumer of a queue: a channel that is opened anew whenever it is lost, and what it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.delayed import DelayedMessages
from socratic_bench.adapters.rabbitmq.faults import despite_faults, is_fault
from socratic_bench.adapters.rabbitmq.holdings import Holdings, Parcel, Part
from socratic_bench.adapters.rabbitmq.lanes import Lanes
from socratic_bench.adapters.rabbitmq.link import Link, lost_event
from socratic_bench.adapters.rabbitmq.routing import Routing
from socratic_bench.adapters.rabbitmq.wire import attempts_before, unpacked
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    DeliveryLost,
    InvalidInput,
)
from socratic_bench.ports.broker import Delivery, WorkQueue

log = structlog.get_logger(__name__)

FEWEST_PARCELS: Final = 64
"""Parcels the server sends ahead at least, since they are not full when there is little to do."""

HOLD_SECONDS: Final = 900.0
"""How long a message is kept unsettled, at most, before the server gets a copy to deliver later.

RabbitMQ closes the channel of a consumer that has not settled a message for half an hour."""


class RabbitMQConsumer:
    """Consumes a queue, or all lanes of it. Keeps the port's promises."""

    def __init__(
        self,
        link: Link,
        routing: Routing,
        queue: WorkQueue,
        lanes: Lanes | None,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
        hold_seconds: float,
    ) -> None:
        if prefetch < 1 or (prefetch_per_group is not None and prefetch_per_group < 1):
            raise InvalidInput(
                f"consumer of queue {queue.name!r}: a prefetch of {prefetch}, {prefetch_per_group} "
                "per group, would never receive anything; give 1 or more"
            )
        self._link = link
        self.queue = queue
        self._lanes = lanes
        self._routing = routing
        self._prefetch = prefetch
        self._per_lane = prefetch if prefetch_per_group is None else prefetch_per_group
        self._delivery_limit = delivery_limit
        self._hold_seconds = hold_seconds
        self._held = Holdings(
            queue.name,
            receipts,
            separate_groups=queue.separate_groups,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
        )
        self._draining = False
        self._ended: BrokerError | None = None
        self._changed = asyncio.Event()
        self._consuming = False
        self._delayed = DelayedMessages(link, routing, queue, longest_hold=hold_seconds)
        self._running = asyncio.create_task(self._run(), name=f"consumer of {queue.name}")

    @property
    def delayed(self) -> int:
        """How many delayed messages it has in hand until they are due."""
        return len(self._delayed)

    async def receive(self, limit: int) -> Sequence[Delivery]:
        # A queue that is never empty must not keep everything else off the event loop.
        await asyncio.sleep(0)
        while True:
            if self._ended is not None:
                raise self._ended
            if self._draining:
                return []
            if self._consuming and (taken := self._held.take(limit)):
                return taken
            await self._held.receivers.wait()

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        deliveries = list(deliveries)
        done, stale = self._held.settle(deliveries)
        for parcel in done:
            await self._finish(parcel)
        if stale:
            raise self._not_in_hand(stale)

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        if counted and delivery.attempt >= self._delivery_limit:
            await self.reject(delivery, reason)
            return
        attempts = delivery.attempt if counted else delivery.attempt - 1
        await self._settle_by(
            delivery,
            lambda: self._routing.again([delivery.message], attempts, delay),
            # What was given up is delivered again as it is.
            needless=self._part(delivery).parcel.given_up,
        )

    async def reject(self, delivery: Delivery, reason: str) -> None:
        await self._settle_by(
            delivery, lambda: self._routing.dead([delivery.message], delivery.attempt, reason)
        )

    def drain(self) -> None:
        self._draining = True
        self._changed.set()
        self._held.receivers.wake_all()

    async def end(self, error: BrokerError) -> None:
        """Give back what is not settled; whoever asks for more gets `error`."""
        self._ended = self._ended or error
        self._running.cancel()
        await asyncio.wait([self._running])
        await self._delayed.end()
        self._held.lose_all()
        self._held.receivers.wake_all()

    def _part(self, delivery: Delivery) -> Part:
        try:
            return self._held.part(delivery)
        except DeliveryLost:
            raise self._not_in_hand([delivery]) from None

    def _not_in_hand(self, deliveries: Sequence[Delivery]) -> BrokerError:
        if isinstance(self._ended, BrokerClosed):
            return self._ended
        return self._held.lost(deliveries[0].message.id, len(deliveries))

    async def _settle_by(
        self, delivery: Delivery, publish: Callable[[], Awaitable[None]], *, needless: bool = False
    ) -> None:
        """Publish a copy elsewhere, then let go of the delivery.

        Where that fails or is cancelled, and the copy may be nowhere, all of its parcel goes back
        to the queue.
        """
        part = self._part(delivery)
        try:
            if not needless:
                await publish()
        except BaseException:
            part.parcel.to_return = True
            raise
        finally:
            done, stale = self._held.settle([delivery])
            for parcel in done:
                await self._finish(parcel)
        if stale:
            raise self._not_in_hand(stale)

    async def _finish(self, parcel: Parcel) -> None:
        """Tell the server that a parcel is done, or that it has to be delivered again."""
        if parcel.given_up:
            return
        try:
            if parcel.to_return:
                await parcel.incoming.nack(requeue=True)
            else:
                await parcel.incoming.ack()
        except Exception as error:
            if not is_fault(error):
                raise
            raise self._held.lost(parcel.incoming.message_id or "") from error

    async def _run(self) -> None:
        while True:
            try:
                async with self._link.channel() as channel:
                    try:
                        await self._consume_until_lost(channel)
                    finally:
                        # From here on nothing may be sent over this channel: it is being closed.
                        self._consuming = False
                        self._held.lose_all()
            except BrokerClosed:
                return
            except BrokerError as error:
                log.warning("cannot consume", queue=self.queue.name, reason=str(error))
                await asyncio.sleep(1)
            except Exception as error:
                # Nobody else would notice: whoever waits for messages would wait for ever.
                log.exception("consumer broke", queue=self.queue.name)
                self._ended = BrokerError(f"queue {self.queue.name!r}: its consumer broke: {error}")
                self._held.receivers.wake_all()
                return

    async def _consume_until_lost(self, channel: AbstractChannel) -> None:
        """Consume what there is to consume, lanes that come later too."""
        lost = await lost_event(channel, self._changed)
        consumed: dict[str, str] = {}
        forget = self._lanes.on_news(self._changed.set) if self._lanes else None
        try:
            await self._link.in_time(channel.set_qos(prefetch_count=self._parcels()))
            while not lost.is_set():
                self._changed.clear()
                if self._draining:
                    await self._stop_taking(channel, consumed)
                    await lost.wait()
                    return
                for name in sorted(set(await self._queues()) - consumed.keys()):
                    consumed[name] = await self._link.in_time(self._consume(channel, name))
                if not self._consuming:
                    # Not before: the first lane would be served alone.
                    self._consuming = True
                    self._held.receivers.wake_all()
                await self._give_up_long_held()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._hold_seconds / 4):
                        await self._changed.wait()
        finally:
            if forget is not None:
                forget()

    def _parcels(self) -> int:
        """How many parcels of a queue or lane the server may send ahead."""
        size = self.queue.parcel
        if self._lanes is not None:
            return max(1, self._per_lane // size)
        return min(self._prefetch, max(-(-self._prefetch // size), FEWEST_PARCELS))

    async def _queues(self) -> list[str]:
        if self._lanes is None:
            return [self.queue.name]
        return [topology.lane(self.queue.name, group) for group in await self._lanes.known()]

    async def _consume(self, channel: AbstractChannel, name: str) -> str:
        queue = await channel.get_queue(name, ensure=False)
        return await queue.consume(self._on_message)

    async def _on_message(self, incoming: AbstractIncomingMessage) -> None:
        if self._ended is not None:
            return
        now = asyncio.get_running_loop().time()
        self._held.arrive(incoming, unpacked(incoming), attempts_before(incoming) + 1, now)

    async def _stop_taking(self, channel: AbstractChannel, consumed: dict[str, str]) -> None:
        """Let others have what was not handed out yet."""
        for name, tag in consumed.items():
            queue = await channel.get_queue(name, ensure=False)
            await self._link.in_time(queue.cancel(tag))
        for parcel in self._held.untouched():
            with despite_faults():
                await parcel.incoming.nack(requeue=True)

    async def _give_up_long_held(self) -> None:
        """Have the server deliver copies of what was held for too long, later.

        Whoever is at work on it goes on; the copy then finds the work done.
        """
        then = asyncio.get_running_loop().time() - self._hold_seconds
        for parcel, in_hand, waited in self._held.give_up_since(then):
            for parts, delay in ((in_hand, self._hold_seconds), (waited, 0.0)):
                if parts:
                    copies = [part.delivery.message for part in parts]
                    await self._routing.again(copies, parts[0].delivery.attempt - 1, delay)
            with despite_faults():
                await parcel.incoming.ack()
