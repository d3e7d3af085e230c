"""The load on each model at the moment, read from the limiters when Prometheus asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_bench.hosting.metrics.scraped_metrics import Read, add_gauge
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.metrics.model_names import ModelNames


def add_limit_metrics(
    metrics: Metrics, limiters: ConcurrencyLimiters, model_names: ModelNames
) -> None:
    """Register the limit in force, the calls in flight and the pause of each model."""

    def of_each_model(figure: Callable[[Sequence[ConcurrencyLimiter]], float]) -> Read:
        def read() -> Iterator[tuple[Sequence[str], float]]:
            for model, its_limiters in _by_model(limiters, model_names).items():
                yield [model], figure(its_limiters)

        return read

    add_gauge(
        metrics,
        "socratic_model_concurrency_limit",
        "Calls that this runner may have in flight at the moment: the limit that it found, or its "
        "share of a configured one",
        ["model"],
        of_each_model(lambda each: sum(limiter.slots for limiter in each)),
    )
    add_gauge(
        metrics,
        "socratic_model_calls_in_flight",
        "Permits in use: calls of this runner that are in flight or about to begin",
        ["model"],
        of_each_model(lambda each: sum(limiter.in_flight for limiter in each)),
    )
    add_gauge(
        metrics,
        "socratic_model_pause_seconds",
        "Seconds for which the model is certainly not called, since its provider pushed back",
        ["model"],
        of_each_model(lambda each: max(limiter.paused_for for limiter in each)),
    )


def _by_model(
    limiters: ConcurrencyLimiters, model_names: ModelNames
) -> dict[str, list[ConcurrencyLimiter]]:
    """Group the limiters by model: a model has one for each account."""
    by_model: defaultdict[str, list[ConcurrencyLimiter]] = defaultdict(list)
    for model_id, limiter in limiters.with_model_ids():
        by_model[model_names.name(model_id)].append(limiter)
    return by_model
