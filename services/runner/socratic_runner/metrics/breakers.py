"""The open breakers of a runner, read when Prometheus asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_bench.hosting.metrics.scraped_metrics import add_gauge
from socratic_runner.metrics.model_names import ModelNames
from socratic_runner.model_pool import ModelPool


def add_breaker_metrics(metrics: Metrics, pool: ModelPool, model_names: ModelNames) -> None:
    """Add the number of open breakers of each model."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        open_breakers = Counter[str]()
        for model in pool:
            open_breakers[model_names.name(model.entry.id)] += model.breaker.is_open
        for name, count in open_breakers.items():
            yield [name], count

    add_gauge(
        metrics,
        "socratic_model_breakers_open",
        "Experiments for which this runner stopped the model after a failure; once a minute a "
        "probe tries again",
        ["model"],
        read,
    )
