"""Metrics of model calls, breakers, leases and limits, as Prometheus reads them."""

from __future__ import annotations

import collections
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Usage
from socratic_bench.hosting.metrics import Metrics, Read, add_counter, add_gauge
from socratic_runner.conversations.call_outcomes import CallObserver
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import ModelPool

MODELS: Final = 200
"""The number of models with series of their own. A model's id is any text: without a bound, the
series could take any amount of memory in the runner and in Prometheus."""

OTHER: Final = "other"
"""The name that all further models share."""


class ModelNames:
    """The names of one runner's models; all of its metrics share them."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def name(self, model_id: str) -> str:
        """Return the model's own id for the first MODELS models, OTHER for later ones."""
        # A submitter names models, so the number of series needs a bound.
        if model_id not in self._named and len(self._named) >= MODELS:
            return OTHER
        self._named.add(model_id)
        return model_id


def add_breaker_metrics(metrics: Metrics, pool: ModelPool, model_names: ModelNames) -> None:
    """Add the number of open breakers of each model."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        open_breakers = collections.Counter[str]()
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


_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


class CallMetrics(CallObserver):
    """Counts model calls, with their tokens, cost and time."""

    def __init__(self, metrics: Metrics, model_names: ModelNames) -> None:
        registry = metrics.registry
        self._name = model_names.name
        calls = Counter(
            "socratic_calls",
            "Calls that ended, by what came of them: ok, or the class of the failure",
            ("model", "outcome"),
            registry=registry,
        )
        tokens = Counter(
            "socratic_call_tokens",
            "Tokens that providers counted, by direction: input, or output with reasoning",
            ("model", "direction"),
            registry=registry,
        )
        usd = Counter(
            "socratic_call_usd",
            "What replies cost in USD, where it is known",
            ("model",),
            registry=registry,
        )
        seconds = Histogram(
            "socratic_call_seconds",
            "Seconds from the start of a call to its end, whatever its outcome",
            ("model",),
            buckets=_SECONDS,
            registry=registry,
        )
        # Finding a series by its labels takes longer than adding to it.
        self._calls, self._tokens = cache(calls.labels), cache(tokens.labels)
        self._usd, self._seconds = cache(usd.labels), cache(seconds.labels)
        self._troubles = Gauge(
            "socratic_model_troubles",
            "Experiments in hand in which the latest call to the model failed, by its class",
            ("model", "outcome"),
            registry=registry,
        )

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Count a call that ended with a reply."""
        model = self._ended(model_id, "ok", seconds)
        for direction, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens is not None:
                self._tokens(model, direction).inc(tokens)
        if cost_nanodollars is not None:
            self._usd(model).inc(cost_nanodollars / NANODOLLARS_PER_DOLLAR)

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Count a call that ended without a reply; `kind` is the class of its failure."""
        self._ended(model_id, kind, seconds)

    def troubled(self, model_id: str, kind: str) -> None:
        """Count a failing model of an experiment; `kind` is the class of its latest failure."""
        self._troubles.labels(self._name(model_id), kind).inc()

    def untroubled(self, model_id: str, kind: str) -> None:
        """Stop counting a model that `troubled` reported."""
        self._troubles.labels(self._name(model_id), kind).dec()

    def _ended(self, model_id: str, outcome: str, seconds: float) -> str:
        """Count a call; returns the model's name in metrics."""
        model = self._name(model_id)
        self._calls(model, outcome).inc()
        self._seconds(model).observe(seconds)
        return model


def add_lease_metrics(metrics: Metrics, answers: Mapping[LeaseAnswer, int]) -> None:
    """Register the counts of the answers; answers that never came count 0."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        for answer in LeaseAnswer:
            yield [answer.name.lower()], answers.get(answer, 0)

    add_counter(
        metrics,
        "socratic_lease_answers",
        "Answers of the store to claims of leases: granted, held by another runner, answered "
        "already, over_budget, stopped",
        ["answer"],
        read,
    )


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
