"""How many experiments are in which state, as Prometheus reads it."""

from __future__ import annotations

import math
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from typing import Final

from prometheus_client import Gauge

from socratic_bench.concurrency.deadlines import within
from socratic_bench.errors import StoreError
from socratic_bench.hosting.metrics.process_metrics import Metrics, looking
from socratic_bench.ports.stores.experiments import ExperimentCounts, Experiments

INTERVAL: Final = 15.0
"""Seconds between two looks at the experiments."""

DEADLINE: Final = 10.0
"""Seconds that the store may take to tell."""


class ExperimentMetrics:
    """How many experiments are in which state, looked up every few seconds."""

    def __init__(self, metrics: Metrics) -> None:
        self._experiments = Gauge(
            "socratic_experiments",
            "Experiments: complete, paused, cancelled, out of budget (exhausted), or else running. "
            "NaN while the store does not say",
            ("state",),
            registry=metrics.registry,
        )

    def watching(self, store: Experiments) -> AbstractAsyncContextManager[None]:
        """Look while the context is open."""

        async def look() -> None:
            try:
                counts = await within(DEADLINE, store.count_experiments())
            except (StoreError, TimeoutError):
                self._show(None)
            else:
                self._show(counts)

        return looking(look, INTERVAL)

    def _show(self, counts: ExperimentCounts | None) -> None:
        for state in fields(ExperimentCounts):
            count = math.nan if counts is None else getattr(counts, state.name)
            self._experiments.labels(state.name).set(count)
