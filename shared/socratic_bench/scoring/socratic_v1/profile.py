"""The recipe of `socratic-v1`: brief, open, asking."""

from __future__ import annotations

from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.length import estimated_tokens, words_and_marks
from socratic_bench.scoring.profile import CANONICAL, SAME_RULER, VectorDescription, Weights
from socratic_bench.scoring.socratic_v1.evidence import (
    DESCRIPTIONS,
    LEGEND,
    PROVIDER,
    RULER,
    SAME_RULER_DESCRIPTIONS,
    evidence_of,
)
from socratic_bench.scoring.socratic_v1.vectors import (
    DIRECTIVE_MARKERS,
    EXPLORATORY_MARKERS,
    VERBOSITY_LIMIT,
    MarkerSet,
    exploratory,
    interrogative,
    lowered,
    verbosity,
)


class SocraticV1:
    """Three surface measurements of a tutor's response."""

    name: str = CANONICAL
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
        return evidence_of(exchange, self._exploratory, self._directive, PROVIDER)

    def describe(self) -> tuple[VectorDescription, ...]:
        return tuple(DESCRIPTIONS.values())

    def legend(self) -> tuple[SpanKind, ...]:
        return LEGEND


class SameRuler(SocraticV1):
    """`socratic-v1` with one ruler for all models: words and marks in place of providers' tokens.

    A change of a tokenizer, or thoughts in a count, do not move its figures.
    """

    name = SAME_RULER

    length = staticmethod(words_and_marks)
    """The tokens of a text, whatever its provider counted."""

    def evidence(self, exchange: Exchange) -> Evidence:
        return evidence_of(exchange, self._exploratory, self._directive, RULER)

    def describe(self) -> tuple[VectorDescription, ...]:
        return tuple(SAME_RULER_DESCRIPTIONS.values())
