"""Messages for the suite, and ways to receive them that never hang."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from uuid import uuid4

from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Broker, Consumer, Delivery, Listener, WorkQueue
from tests.contract.broker.adapters import BrokerAdapter
from tests.waiting import until, waiting_for

T = TypeVar("T")

LONG_DELAY = 3_000.0
"""Seconds of a delay that no test waits for."""


def new_queue(
    event_type: str | None = None, *, separate_groups: bool = False, batch: int = 1
) -> WorkQueue:
    """A queue no other test knows, for a type no other test knows unless one is given."""
    name = f"test-{uuid4().hex[:12]}"
    return WorkQueue(name, event_type or f"test.{name}.v1", separate_groups, batch)


def message(queue: WorkQueue, number: object, group: str = "model") -> Message:
    """A message for a queue; its id and body tell its group and number."""
    name = f"{group}/{number}"
    return Message(id=name, type=queue.event_type, group=group, body=name.encode())


def messages(queue: WorkQueue, count: int, group: str = "model") -> list[Message]:
    """Messages 0 to `count` - 1 of a group."""
    return [message(queue, number, group) for number in range(count)]


def ids(things: Iterable[Delivery | Message]) -> list[str]:
    """The ids of messages or of delivered ones, in their order."""
    return [thing.message.id if isinstance(thing, Delivery) else thing.id for thing in things]


class Traffic:
    """Receives from one adapter's brokers, with a deadline."""

    def __init__(self, adapter: BrokerAdapter) -> None:
        self._adapter = adapter

    async def receive(self, consumer: Consumer, limit: int = 100) -> list[Delivery]:
        """One receive."""
        async with waiting_for("a delivery"):
            return list(await consumer.receive(limit))

    async def take(self, consumer: Consumer, count: int, limit: int = 100) -> list[Delivery]:
        """Exactly `count` deliveries, in as many receives as it takes."""
        taken: list[Delivery] = []
        while len(taken) < count:
            received = await self.receive(consumer, min(limit, count - len(taken)))
            assert received, "the consumer drains"
            taken += received
        return taken

    async def hear(self, listener: Listener, count: int) -> list[Message]:
        """The next `count` messages a listener hears."""
        heard: list[Message] = []
        async with waiting_for(f"{count} broadcasts"):
            async for heard_message in listener:
                heard.append(heard_message)
                if len(heard) == count:
                    break
        return heard

    async def finish(self, task: asyncio.Task[T]) -> T:
        """The result of a task that is expected to end."""
        async with waiting_for("the end of a task"):
            return await task

    async def is_waiting(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task goes on waiting although nothing happens."""
        _, pending = await asyncio.wait({task}, timeout=self._adapter.silence)
        return task in pending

    async def receive_if_any(self, consumer: Consumer, limit: int) -> list[Delivery]:
        """One receive, or nothing if nothing comes."""
        receiving = asyncio.create_task(self.receive(consumer, limit))
        if await self.is_waiting(receiving):
            receiving.cancel()
            await asyncio.wait({receiving})
        return [] if receiving.cancelled() else receiving.result()

    async def receives_nothing(self, consumer: Consumer) -> bool:
        """Whether a receive finds nothing; the receive is cancelled."""
        task = asyncio.create_task(_receive_one(consumer))
        waiting = await self.is_waiting(task)
        task.cancel()
        await asyncio.wait({task})
        return waiting

    async def until_is(self, read: Callable[[], Awaitable[object]], expected: object) -> None:
        """Wait until a reading is as expected: a server announces no event of it."""
        await until(read, lambda found: found == expected, f"{expected!r}")

    async def until_depth(self, broker: Broker, queue: WorkQueue, expected: int) -> None:
        """Wait until so many messages wait in a queue."""
        await self.until_is(lambda: broker.depth(queue.name), expected)


async def _receive_one(consumer: Consumer) -> object:
    return await consumer.receive(1)
