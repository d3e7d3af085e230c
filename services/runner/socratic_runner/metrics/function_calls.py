"""Metrics of a function's model calls: a line for each model of an invocation, in its log.

CloudWatch bills a metric for each set of dimensions by the month, so the calls and the money are
metrics of the service as a whole, and the model and its outcomes stand beside them, for queries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Usage
from socratic_bench.hosting.functions.embedded_metrics import EmbeddedMetrics
from socratic_runner.conversations.call_outcomes import CallObserver

OK = "ok"
"""The outcome of a call with a reply; that of another one is the class of its failure."""


@dataclass(slots=True)
class _Calls:
    outcomes: Counter[str] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0
    nanodollars: int = 0
    seconds: float = 0.0


class FunctionCallMetrics(CallObserver):
    """Counts the calls of an invocation by model, with their tokens, cost and time."""

    def __init__(self, metrics: EmbeddedMetrics, refused_writes: Callable[[], int]) -> None:
        """`refused_writes` returns how many writes the store has refused since the start."""
        self._metrics = metrics
        self._refused_writes = refused_writes
        self._refused_before = refused_writes()
        self._models: defaultdict[str, _Calls] = defaultdict(_Calls)

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Count a call that ended with a reply."""
        calls = self._ended(model_id, OK, seconds)
        calls.input_tokens += usage.input_tokens or 0
        calls.output_tokens += usage.output_tokens or 0
        calls.nanodollars += cost_nanodollars or 0

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Count a call that ended without a reply; `kind` is the class of its failure."""
        self._ended(model_id, str(kind), seconds)

    def write(self) -> None:
        """Write what was counted, and begin anew."""
        models, self._models = self._models, defaultdict(_Calls)
        refused = self._refused_writes()
        since, self._refused_before = refused - self._refused_before, refused
        for model_id, calls in models.items():
            total = calls.outcomes.total()
            self._metrics.write(
                {"Calls": total, "FailedCalls": total - calls.outcomes[OK]},
                {"CallUSD": calls.nanodollars / NANODOLLARS_PER_DOLLAR},
                model=model_id,
                outcomes=dict(calls.outcomes),
                input_tokens=calls.input_tokens,
                output_tokens=calls.output_tokens,
                call_seconds=round(calls.seconds, 3),
                refused_writes=since,
            )

    def _ended(self, model_id: str, outcome: str, seconds: float) -> _Calls:
        calls = self._models[model_id]
        calls.outcomes[outcome] += 1
        calls.seconds += seconds
        return calls
