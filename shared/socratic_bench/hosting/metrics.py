"""What a process has done, as Prometheus reads it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from socratic_bench.consuming.observing import SettledAs
from socratic_bench.errors import BrokerError
from socratic_bench.hosting.deadlines import within
from socratic_bench.ports.broker import Broker

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

DEPTH_INTERVAL: Final = 5.0
"""Seconds between two looks at how many messages wait."""

DEPTH_DEADLINE: Final = 3.0
"""Seconds that the broker may take to tell."""

_SECONDS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900)
"""Bounds of the buckets: a batch of scores takes milliseconds, a call to a model a minute."""


class Metrics:
    """The metrics of one process: its own registry, with memory, processor time and open files."""

    def __init__(self) -> None:
        # When a series began would be a series more for each.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """All of them, in Prometheus's text format."""
        return generate_latest(self.registry)


class MessageMetrics:
    """Counts what workers do with messages; an observer of theirs."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._settled = Counter(
            "socratic_messages",
            "Messages that left this process's hands, by what became of them",
            ("queue", "outcome"),
            registry=registry,
        )
        self._in_flight = Gauge(
            "socratic_messages_in_flight", "Messages in hand", ("queue",), registry=registry
        )
        self._seconds = Histogram(
            "socratic_message_seconds",
            "From when a message was taken in hand to when it was settled",
            ("queue",),
            buckets=_SECONDS,
            registry=registry,
        )

    def expect(self, queues: Iterable[str]) -> None:
        """Show these queues from the start, with nothing done yet."""
        for queue in queues:
            self._in_flight.labels(queue)
            self._seconds.labels(queue)
            for outcome in get_args(SettledAs):
                self._settled.labels(queue, outcome)

    def taken(self, queue: str, messages: int) -> None:
        """Messages of a queue are in hand now."""
        self._in_flight.labels(queue).inc(messages)

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Messages of a queue are not in hand any more."""
        self._in_flight.labels(queue).dec(messages)
        self._settled.labels(queue, outcome).inc(messages)
        took = self._seconds.labels(queue)
        for _ in range(messages):
            took.observe(seconds)


class DepthMetrics:
    """How many messages wait in queues, looked up every few seconds."""

    def __init__(self, metrics: Metrics) -> None:
        self._depth = Gauge(
            "socratic_queue_depth",
            "Messages that wait in a queue, delayed ones included, in the broker's own units: "
            "several may travel as one. NaN while the broker does not say",
            ("queue",),
            registry=metrics.registry,
        )

    @asynccontextmanager
    async def watching(self, broker: Broker, queues: Iterable[str]) -> AsyncIterator[None]:
        """Look while the context is open."""
        watching = asyncio.create_task(self._watch(broker, tuple(queues)), name="queue depths")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self, broker: Broker, queues: Iterable[str]) -> None:
        while True:
            for queue in queues:
                self._depth.labels(queue).set(await _depth(broker, queue))
            await asyncio.sleep(DEPTH_INTERVAL)


async def _depth(broker: Broker, queue: str) -> float:
    try:
        depth = await within(DEPTH_DEADLINE, broker.depth(queue))
    except (BrokerError, TimeoutError):
        return math.nan
    return math.nan if depth is None else depth
