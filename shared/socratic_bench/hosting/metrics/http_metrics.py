"""The requests to an API, as Prometheus reads them."""

from __future__ import annotations

from time import perf_counter
from typing import Final

from prometheus_client import Counter, Histogram
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from socratic_bench.hosting.metrics.process_metrics import Metrics

UNKNOWN: Final = "unknown"
"""The route of every request for an unknown path: clients may ask for any number of paths."""

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


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
            buckets=_SECONDS,
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
