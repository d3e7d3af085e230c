"""Metrics that are read when Prometheus asks, so that they cost the measured code nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from socratic_bench.hosting.metrics.process_metrics import Metrics

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
