"""Profile `uptake-v1`: does the tutor take up the student's words, and does it ask?"""

from __future__ import annotations

from socratic_bench.scoring.evidence import Evidence, Fact, Mark, Span, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.profile import ScoreRange, VectorDescription, Weights

SHORTEST = 4
"""Letters of a word that carries content."""

DESCRIPTIONS = (
    VectorDescription(
        name="uptake",
        meaning="The share of the student's words that the tutor takes up; none on the first turn.",
        formula="words of both / words of the student",
        examples=(),
        ranges=(ScoreRange(0.5, "takes up"), ScoreRange(0.0, "passes over")),
    ),
    VectorDescription(
        name="asking",
        meaning="1.00 if the response has a question mark, else 0.00.",
        formula='1.0 if "?" in text, else 0.0',
        examples=(("Why?", None), ("Because.", None)),
        ranges=(ScoreRange(1.0, "asks"), ScoreRange(0.0, "does not ask")),
    ),
)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.lower().split() if len(word) >= SHORTEST)


class Uptake:
    """Two vectors, of which `uptake` applies from the second turn on."""

    name = "uptake-v1"
    vectors = ("uptake", "asking")
    weights = Weights()

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score finished responses only."""
        return status is Status.OK

    def measure(self, exchange: Exchange) -> tuple[float | None, float]:
        """Return both scores; `uptake` is None on the first turn and without a student message."""
        said = _words(exchange.student_message)
        asking = 1.0 if "?" in exchange.text else 0.0
        if not exchange.earlier_turns or not said:
            return None, asking
        return len(said & _words(exchange.text)) / len(said), asking

    def evidence(self, exchange: Exchange) -> Evidence:
        """Return the positions of the question marks, and the figures in words."""
        uptake, asking = self.measure(exchange)
        first, second = DESCRIPTIONS
        taken_up = (
            Fact("does not apply: nothing was said before")
            if uptake is None
            else Fact(f"share of the student's words: {uptake:.2f}", word=first.word_for(uptake))
        )
        marks = (at for at, letter in enumerate(exchange.text) if letter == "?")
        return Evidence(
            spans=tuple(Span(at, at + 1, "question", "?") for at in marks),
            facts={
                "uptake": taken_up,
                "asking": Fact(f"question mark: {asking:.2f}", word=second.word_for(asking)),
            },
        )

    def describe(self) -> tuple[VectorDescription, ...]:
        """Describe the vectors."""
        return DESCRIPTIONS

    def legend(self) -> tuple[SpanKind, ...]:
        """Explain the spans: question marks raise `asking`."""
        return (SpanKind("question", "question", "It raises asking.", Mark.RAISES),)
