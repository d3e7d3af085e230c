"""What the suite knows of an adapter: how to open it, and its real differences."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from socratic_bench.adapters.brokers.declarations import DELIVERY_LIMIT
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.ports.broker import Broker
from tests.contract.sketches.broker_sketch import SketchBroker
from tests.servers import aws_emulator, moto, sqs
from tests.servers.discovery import Server
from tests.servers.rabbitmq import delete, new_namespace


@dataclass(frozen=True)
class Limits:
    """How the broker of a test is to be set up; None leaves it to the adapter."""

    delivery_limit: int | None = None
    max_waiting: int | None = None


@dataclass(frozen=True)
class BrokerAdapter:
    """One adapter under test. A difference is a flag here, never an override of a test."""

    name: str
    open: Callable[[Limits], AbstractAsyncContextManager[Broker]]
    """Opens a broker; closes it afterwards and removes its declarations."""

    waits_when_full: bool
    """Whether `max_waiting` bounds a queue and `publish` waits for room in it."""

    silence: float
    """Seconds without anything after which nothing is going to happen."""

    delay: float
    """The shortest delay, in seconds, that a retry can be told from an immediate one by."""

    knows_groups: bool = True
    """Whether it can tell how many messages of one group there are in a queue that does not keep
    its groups apart."""

    separates_groups: bool = True
    """Whether its server keeps the groups of a queue apart, and so tells the depth of each, and
    turns to each although a consumer may hold any number of one. Where one queue holds all groups,
    a consumer finds out about them as their messages come."""

    sends_ahead: bool = False
    """Whether a consumer gets messages before it asks for them. Other consumers do not get those
    then."""


@asynccontextmanager
async def _open_memory(limits: Limits) -> AsyncIterator[Broker]:
    broker = MemoryBroker(
        delivery_limit=limits.delivery_limit or 20, max_waiting=limits.max_waiting or 10_000
    )
    try:
        yield broker
    finally:
        await broker.close()


MEMORY = BrokerAdapter(
    name="memory",
    open=_open_memory,
    waits_when_full=True,
    silence=0.02,
    delay=0.1,
)


@asynccontextmanager
async def _open_sketch(limits: Limits) -> AsyncIterator[Broker]:
    broker = SketchBroker(delivery_limit=limits.delivery_limit or DELIVERY_LIMIT)
    try:
        yield broker
    finally:
        await broker.close()


SKETCH = replace(MEMORY, name="sketch", open=_open_sketch, waits_when_full=False)


@asynccontextmanager
async def _open_rabbitmq(limits: Limits) -> AsyncIterator[Broker]:
    url = await new_namespace()
    broker = RabbitMQBroker(url, delivery_limit=limits.delivery_limit or DELIVERY_LIMIT)
    try:
        yield broker
    finally:
        await broker.close()
        queues = list(broker._declared.work.values())
        await delete(url, queues, set().union(*broker._needed.group_queues.values()))


RABBITMQ = BrokerAdapter(
    name="rabbitmq",
    open=_open_rabbitmq,
    waits_when_full=False,
    silence=0.15,
    delay=0.2,
    knows_groups=False,
    sends_ahead=True,
)


@asynccontextmanager
async def _open_sqs(limits: Limits, server: Server) -> AsyncIterator[Broker]:
    async with sqs.namespace(server) as url:
        broker = SqsBroker(url, delivery_limit=limits.delivery_limit or DELIVERY_LIMIT)
        try:
            yield broker
        finally:
            await broker.close()


SQS = BrokerAdapter(
    name="sqs",
    open=partial(_open_sqs, server=aws_emulator.SERVER),
    waits_when_full=False,
    silence=0.4,
    delay=1.0,
    knows_groups=False,
    separates_groups=False,
    sends_ahead=True,
)

SQS_OF_MOTO = replace(SQS, name="sqs-of-moto", open=partial(_open_sqs, server=moto.SERVER))
"""A second imitation of the same server, for smoke tests alone: it bears no load."""
