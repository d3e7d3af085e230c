"""What the reconciler sent again, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from socratic_bench.hosting.metrics import Metrics
from socratic_bench.planning.reconciler import SentAgain


class ReconcilerMetrics(Collector):
    """Reads what a reconciler has counted, whenever Prometheus asks."""

    def __init__(self, metrics: Metrics, sent_again: Mapping[SentAgain, int]) -> None:
        self._sent_again = sent_again
        metrics.registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counts, those of what was never sent again too."""
        family = CounterMetricFamily(
            "socratic_reconciled",
            "What was sent again because the broker had lost it, by kind",
            labels=["what"],
        )
        for what in get_args(SentAgain):
            family.add_metric([what], self._sent_again.get(what, 0))
        yield family
