"""The work of a process and the requests to an API, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Final, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency.deadlines import within
from socratic_bench.consuming.worker import FindGroups, Observer, SettledAs
from socratic_bench.errors import BrokerError, StoreError
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

DEPTH_INTERVAL: Final = 5.0
"""Seconds between two looks at how many messages wait, and at whether the process is ready."""

DEPTH_DEADLINE: Final = 3.0
"""Seconds that the broker may take to answer."""

_WORK_SECONDS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900)
"""Bounds of the buckets: a batch of scores takes milliseconds, a call to a model a minute."""


class Metrics:
    """The metrics of one process: its own registry, with memory, processor time and open files."""

    def __init__(self) -> None:
        # When a series began would be a series more for each.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class MessageMetrics(Observer):
    """Observes workers and counts their messages."""

    def __init__(self, metrics: Metrics, clock: Clock | None = None) -> None:
        registry = metrics.registry
        self._clock = clock or SystemClock()
        self._batches: defaultdict[str, dict[object, datetime]] = defaultdict(dict)
        self._oldest = Gauge(
            "socratic_oldest_message_seconds",
            "Age of the oldest event of all batches in hand; 0 without a batch in hand",
            ("queue",),
            registry=registry,
        )
        self._settled = Counter(
            "socratic_messages",
            "Messages that this process settled, by outcome",
            ("queue", "outcome"),
            registry=registry,
        )
        self._in_flight = Gauge(
            "socratic_messages_in_flight", "Messages in hand", ("queue",), registry=registry
        )
        self._seconds = Histogram(
            "socratic_message_seconds",
            "Seconds from the receipt of a message to its settlement",
            ("queue",),
            buckets=_WORK_SECONDS,
            registry=registry,
        )

    def expect(self, queues: Iterable[str]) -> None:
        """Show the series of these queues from the start."""
        for queue in queues:
            self._oldest.labels(queue).set_function(partial(self._age, queue))
            self._in_flight.labels(queue)
            self._seconds.labels(queue)
            for outcome in get_args(SettledAs):
                self._settled.labels(queue, outcome)

    @contextmanager
    def holding(self, queue: str, times: Iterable[datetime]) -> Iterator[None]:
        """Hold a batch, whose events happened at these times, while the context is open."""
        batches, batch = self._batches[queue], object()
        batches[batch] = min(map(_with_zone, times), default=self._clock.now())
        try:
            yield
        finally:
            del batches[batch]

    def taken(self, queue: str, messages: int) -> None:
        """Count messages of a queue that the worker received."""
        self._in_flight.labels(queue).inc(messages)

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Count messages of a queue that the worker settled, `seconds` after their receipt."""
        self._in_flight.labels(queue).dec(messages)
        self._settled.labels(queue, outcome).inc(messages)
        took = self._seconds.labels(queue)
        for _ in range(messages):
            took.observe(seconds)

    def _age(self, queue: str) -> float:
        now = self._clock.now()
        # The clock of the publisher may be ahead.
        oldest = min(self._batches[queue].values(), default=now)
        return max(0.0, (now - oldest).total_seconds())


def _with_zone(time: datetime) -> datetime:
    """Return a comparable time: a publisher may leave out the zone, which is UTC then."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


@asynccontextmanager
async def looking(look: Callable[[], Awaitable[object]], every: float) -> AsyncIterator[None]:
    """Call `look` again and again, with pauses of `every` seconds, while the context is open."""

    async def look_on() -> None:
        while True:
            await look()
            await asyncio.sleep(every)

    task = asyncio.create_task(look_on(), name="metrics")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class ReadyMetrics:
    """Looks up every few seconds whether a process is ready."""

    def __init__(self, metrics: Metrics) -> None:
        self._ready = Gauge(
            "socratic_ready",
            "1 if the process can do its work, as /readyz says; else 0",
            registry=metrics.registry,
        )

    def watching(self, readiness: Readiness) -> AbstractAsyncContextManager[None]:
        """Look while the context is open."""

        async def look() -> None:
            self._ready.set(await readiness.problem() is None)

        return looking(look, DEPTH_INTERVAL)


class DepthMetrics:
    """Looks up every few seconds how many messages wait in queues, or are dead letters."""

    def __init__(self, metrics: Metrics) -> None:
        self._depth = Gauge(
            "socratic_queue_depth",
            "Messages that wait in a queue, delayed ones included, in the broker's own units: "
            "several may travel as one. NaN while the broker does not say",
            ("queue",),
            registry=metrics.registry,
        )
        self._dead = Gauge(
            "socratic_dead_letters",
            "Dead letters of a queue, in the broker's own units. NaN while the broker does not say",
            ("queue",),
            registry=metrics.registry,
        )

    def watching(
        self, broker: Broker, queues: Sequence[str], groups: Mapping[str, FindGroups] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Look while the context is open. `groups` finds the groups of a queue by the queue's name,
        for a process that does not serve them.
        """

        async def depth(queue: str) -> int | None:
            find_groups = (groups or {}).get(queue)
            return await broker.depth(queue, groups=await find_groups() if find_groups else ())

        async def look() -> None:
            for queue in queues:
                self._depth.labels(queue).set(await _told(depth(queue)))
                self._dead.labels(queue).set(await _told(broker.dead_letter_depth(queue)))

        return looking(look, DEPTH_INTERVAL)


async def _told(depth: Awaitable[int | None]) -> float:
    try:
        messages = await within(DEPTH_DEADLINE, depth)
    except (BrokerError, StoreError, TimeoutError):
        return math.nan
    return math.nan if messages is None else messages


Read = Callable[[], Iterable[tuple[Sequence[str], float]]]
"""Returns each series: the values of its labels, and its value. It returns at once, and the number
of series has a bound."""


def add_gauge(
    metrics: Metrics, name: str, description: str, labels: Sequence[str], read: Read
) -> None:
    """Add values that rise and fall. Raises ValueError if the process has the name already."""
    _add(metrics, lambda: GaugeMetricFamily(name, description, labels=labels), read)


def add_counter(
    metrics: Metrics, name: str, description: str, labels: Sequence[str], read: Read
) -> None:
    """Add values that only rise; Prometheus sees `name` with `_total` after it.

    Raises ValueError if the process has the name already.
    """
    _add(metrics, lambda: CounterMetricFamily(name, description, labels=labels), read)


def _add(
    metrics: Metrics, new_family: Callable[[], GaugeMetricFamily | CounterMetricFamily], read: Read
) -> None:
    metrics.registry.register(_Scraped(new_family, read))


class _Scraped(Collector):
    def __init__(
        self, new_family: Callable[[], GaugeMetricFamily | CounterMetricFamily], read: Read
    ) -> None:
        self._new_family = new_family
        self._read = read

    def describe(self) -> Iterator[Metric]:
        """Return the family without its series, so that registering it reads nothing."""
        yield self._new_family()

    def collect(self) -> Iterator[Metric]:
        """Return the family with a series for each value."""
        family = self._new_family()
        for labels, value in self._read():
            family.add_metric(labels, value)
        yield family


UNKNOWN: Final = "unknown"
"""The route of every request for an unknown path: clients may ask for any number of paths."""

_REQUEST_SECONDS: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    10,
)


class HttpMetrics:
    """Counts requests and times them."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = Counter(
            "socratic_http_requests",
            "Requests that the API answered",
            ("route", "status"),
            registry=metrics.registry,
        )
        self._seconds = Histogram(
            "socratic_http_request_seconds",
            "Seconds from the arrival of a request to the end of its answer, or a stream's begin",
            ("route",),
            buckets=_REQUEST_SECONDS,
            registry=metrics.registry,
        )

        self._series: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        series = self._series.get((route, status))
        if series is None:
            counter, histogram = (
                self._requests.labels(route, str(status)),
                self._seconds.labels(route),
            )
            series = self._series[route, status] = counter, histogram
        series[0].inc()
        series[1].observe(seconds)


class CountRequests:
    """Middleware that tells HttpMetrics of every request; the outermost one."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, stream_seconds = 500, None
        began = perf_counter()

        async def send_and_note(message: Message) -> None:
            nonlocal status, stream_seconds
            if message["type"] == "http.response.start":
                status = message["status"]
                if _is_stream(message):
                    stream_seconds = perf_counter() - began
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            route = scope.get("route")
            path = route.path if isinstance(route, Route) else UNKNOWN
            seconds = perf_counter() - began if stream_seconds is None else stream_seconds
            self._metrics.answered(path, status, seconds)


def _is_stream(start: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )
