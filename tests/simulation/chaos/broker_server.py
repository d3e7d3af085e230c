"""The broker as a server: the broker in memory behind wires, as RabbitMQ behaves behind them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.brokers.memory.consumer import MemoryConsumer
from socratic_bench.adapters.brokers.memory.queue import MemoryQueue
from socratic_bench.errors import BrokerClosed, BrokerError, BrokerUnavailable, UnroutableMessage
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Broker, DeadLetter, Delivery, WorkQueue
from tests.simulation.chaos.network import Wire

CONFIRM_SECONDS: Final = 15.0
"""Seconds that a publisher waits for a confirm."""

RECONNECT_SECONDS: Final = (0.05, 3.0)
"""Seconds from the end of a connection to the next one."""


class BrokerServer(MemoryBroker):
    """One broker for all processes, with everything that can go wrong in it.

    It knows no more than RabbitMQ: its depth leaves out the messages in a consumer's hand.
    """

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._open: dict[str, list[MemoryConsumer]] = {}
        self.published: Counter[str] = Counter()
        """Messages that it took, by their types."""

        self.away = 0
        """Faults in force under which it answers nothing; so for the others."""

        self.confirms_nothing = 0
        self.repeats = 0
        self.loses = 0
        self.missing: Counter[str] = Counter()
        """Queues that an operator deleted and nobody has declared again."""

    async def take(self, messages: Sequence[Message]) -> None:
        """Publish what a process sent. Raises BrokerUnavailable without a confirm in time."""
        if self.away:
            await asyncio.sleep(CONFIRM_SECONDS * self._chance.random())
            raise BrokerUnavailable("simulated: no connection to the broker")
        self._check_not_missing(messages)
        self.published.update(message.type for message in messages)
        if self.confirms_nothing:
            if self._chance.random() < 0.5:
                await self.publish(messages)
            await asyncio.sleep(CONFIRM_SECONDS)
            raise BrokerUnavailable("simulated: no confirm in time")
        if self.loses:
            messages = [each for each in messages if self._chance.random() < 0.5]
        if self.repeats:
            messages = [*messages, *messages]
            self._chance.shuffle(messages)
        await self.publish(messages)

    def queue(self, name: str) -> MemoryQueue:
        return self._declared.queue(name)

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int:
        if self.away:
            raise BrokerUnavailable("simulated: no connection to the broker")
        waiting = self.queue(queue)
        return waiting.depth if group is None else waiting.depth_of(group)

    def drop(self, queue: str) -> None:
        """Lose every message of a queue that waits for a consumer."""
        waiting = self.queue(queue)
        waiting._suspects.clear()
        delayed = {group for group, _ in waiting._delayed.values()}
        for group in [*waiting._groups, *sorted(delayed)]:
            waiting.remove_group(group)

    def lose_all(self) -> None:
        """Lose every message, those in a consumer's hand too."""
        for consumers in self._open.values():
            for consumer in consumers:
                consumer._in_hand.clear()
        self.end_consumers([*self._open], "the broker started anew")
        for name in self._declared.work:
            self.drop(name)

    def shuffle(self, queue: str) -> None:
        """Have the messages of each group come in another order."""
        for group in self.queue(queue)._groups.values():
            messages = list(group)
            self._chance.shuffle(messages)
            group.clear()
            group.extend(messages)

    def limit(self, most: int) -> None:
        """Let each queue hold at most so many messages beside returned ones."""
        for queue in self._declared.queues():
            queue._max_waiting = most
        for route in self._routes.values():
            route.publishers.wake_all()

    def opened(self, process: str, consumer: MemoryConsumer) -> None:
        self._open.setdefault(process, []).append(consumer)

    def end_consumers(self, processes: Iterable[str], reason: str) -> None:
        """End the consumers of these processes: their unsettled messages go back."""
        error = BrokerUnavailable(f"simulated: {reason}")
        for process in processes:
            for consumer in self._open.pop(process, ()):
                consumer.end(error)

    def _check_not_missing(self, messages: Sequence[Message]) -> None:
        types = {each.type for each in messages}
        for queue in self._declared.work.values():
            if self.missing[queue.name] and queue.event_type in types:
                raise UnroutableMessage(f"simulated: somebody deleted the queue {queue.name}")


class ConsumerPort:
    """A consumer of one process, which connects again whenever its connection ends."""

    def __init__(self, port: BrokerPort, queue: str, options: dict[str, Any]) -> None:
        self._port = port
        self._queue = queue
        self._options = options
        self._inner: MemoryConsumer | None = None
        self._ending = AsyncExitStack()
        self._draining = asyncio.Event()

    def serve(self, groups: Collection[str]) -> None:
        """Do nothing: the consumer serves every group of the queue."""

    async def heard_of_group(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def receive(self, limit: int) -> Sequence[Delivery]:
        while not self._draining.is_set():
            if self._inner is None:
                await self._connect()
                continue
            try:
                return await self._inner.receive(limit)
            except BrokerClosed:
                raise
            except BrokerError:
                self._inner = None
        return []

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        held, deliveries = self._held(), list(deliveries)
        await self._port.wire.ask("ack", lambda: held.ack(deliveries))

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        held = self._held()
        await self._port.wire.ask(
            "retry", lambda: held.retry(delivery, delay, reason, counted=counted)
        )

    async def reject(self, delivery: Delivery, reason: str) -> None:
        held = self._held()
        await self._port.wire.ask("reject", lambda: held.reject(delivery, reason))

    def drain(self) -> None:
        self._draining.set()
        if self._inner is not None:
            self._inner.drain()

    async def close(self) -> None:
        await self._ending.aclose()

    def _held(self) -> MemoryConsumer:
        if self._inner is None:
            raise BrokerUnavailable("simulated: the connection ended")
        return self._inner

    async def _connect(self) -> None:
        await self._port.connected(self._queue)
        if self._port.wire.is_cut:
            raise asyncio.CancelledError
        consuming = self._port.server.consume(self._queue, **self._options)
        inner = await self._ending.enter_async_context(consuming)
        self._port.server.opened(self._port.process, inner)
        self._inner = inner


class BrokerPort:
    """The broker as one process sees it."""

    def __init__(
        self, server: BrokerServer, process: str, wire: Wire, chance: random.Random
    ) -> None:
        self.server = server
        self.process = process
        self.wire = wire
        self._chance = chance

    def as_broker(self) -> Broker:
        return cast("Broker", self)

    async def connected(self, queue: str) -> None:
        """Wait until the broker can be consumed."""
        while True:
            await asyncio.sleep(self._chance.uniform(*RECONNECT_SECONDS))
            if not self.server.away and not self.server.missing[queue]:
                return

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        await self.wire.ask("declare", lambda: self.server.declare(queues, broadcasts))

    async def publish(self, messages: Sequence[Message]) -> None:
        messages = list(messages)
        what = f"publish {','.join(sorted({each.type for each in messages}))} {len(messages)}"
        await self.wire.ask_patiently(what, lambda: self.server.take(messages))

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[ConsumerPort]:
        options = {"prefetch": prefetch, "prefetch_per_group": prefetch_per_group}
        consumer = ConsumerPort(self, queue, options)
        try:
            yield consumer
        finally:
            await consumer.close()

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int:
        return await self.wire.ask("depth", lambda: self.server.depth(queue, group))

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        return await self.wire.ask("dead letters", lambda: self.server.dead_letters(queue, limit))
