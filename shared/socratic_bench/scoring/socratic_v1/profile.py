"""The recipe of `socratic-v1`: brief, open, asking."""

from __future__ import annotations

from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.profile import VectorDescription, Weights
from socratic_bench.scoring.socratic_v1.evidence import evidence_of
from socratic_bench.scoring.socratic_v1.markers import MarkerSet, lowered
from socratic_bench.scoring.socratic_v1.texts import DESCRIPTIONS, LEGEND
from socratic_bench.scoring.socratic_v1.vectors import (
    DIRECTIVE_MARKERS,
    EXPLORATORY_MARKERS,
    VERBOSITY_LIMIT,
    estimated_tokens,
    exploratory,
    interrogative,
    verbosity,
)
from socratic_bench.scoring.statuses import Status


class SocraticV1:
    """Three surface measurements of a tutor's response."""

    name = "socratic-v1"
    vectors = ("verbosity", "exploratory", "interrogative")

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self._exploratory = MarkerSet(EXPLORATORY_MARKERS)
        self._directive = MarkerSet(DIRECTIVE_MARKERS)

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score finished responses, and cut-off ones that had reached the verbosity limit."""
        if status is Status.OK:
            return True
        return (
            status is Status.TRUNCATED
            and visible_tokens is not None
            and visible_tokens >= VERBOSITY_LIMIT
        )

    def measure(self, exchange: Exchange) -> tuple[float, float, float]:
        text, tokens = exchange.text, exchange.visible_tokens
        low = lowered(text)
        return (
            verbosity(estimated_tokens(text) if tokens is None else tokens),
            exploratory(self._exploratory.count(low), self._directive.count(low)),
            interrogative(text),
        )

    def evidence(self, exchange: Exchange) -> Evidence:
        return evidence_of(exchange, self._exploratory, self._directive)

    def describe(self) -> tuple[VectorDescription, ...]:
        return tuple(DESCRIPTIONS.values())

    def legend(self) -> tuple[SpanKind, ...]:
        return LEGEND
