"""Metrics of model calls: outcomes, tokens, cost and time."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Usage
from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_runner.metrics.model_names import ModelNames

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


class CallMetrics:
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
