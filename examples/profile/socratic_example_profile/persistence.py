"""Profile `persistence-v1`: does the tutor go on asking, turn after turn?"""

from __future__ import annotations

from socratic_bench.scoring.evidence import Evidence, Fact, Mark, Span, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.profile import ScoreRange, VectorDescription, Weights

DESCRIPTION = VectorDescription(
    name="asking",
    meaning="1.00 if the response has a question mark, else 0.00.",
    formula='1.0 if "?" in text, else 0.0',
    examples=(("Why?", None), ("Because.", None)),
    ranges=(ScoreRange(1.0, "asks"), ScoreRange(0.0, "does not ask")),
)


class Persistence:
    """One vector, and two counts from which a survival curve is drawn: a cell is one turn.

    The share of runs that still ask after turn n is the product of `1 - lapsed / at_risk` over the
    cells of the turns up to n.
    """

    name = "persistence-v1"
    vectors = ("asking",)
    counts = ("at_risk", "lapsed")
    weights = Weights()

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Finished responses alone."""
        return status is Status.OK

    def measure(self, exchange: Exchange) -> tuple[float]:
        """Whether the response asks."""
        return (1.0 if "?" in exchange.text else 0.0,)

    def count(self, exchange: Exchange) -> tuple[int, int]:
        """Whether the tutor asked in every earlier turn, and whether it stops in this one."""
        at_risk = all("?" in turn.tutor for turn in exchange.earlier_turns)
        return int(at_risk), int(at_risk and "?" not in exchange.text)

    def evidence(self, exchange: Exchange) -> Evidence:
        """Where the question marks are."""
        (asking,) = self.measure(exchange)
        marks = (at for at, letter in enumerate(exchange.text) if letter == "?")
        fact = Fact(f"question mark: {asking:.2f}", word=DESCRIPTION.word_for(asking))
        spans = tuple(Span(at, at + 1, "question", "?") for at in marks)
        return Evidence(spans=spans, facts={"asking": fact})

    def describe(self) -> tuple[VectorDescription, ...]:
        """The vector in words."""
        return (DESCRIPTION,)

    def legend(self) -> tuple[SpanKind, ...]:
        """Question marks raise `asking`."""
        return (SpanKind("question", "question", "It raises asking.", Mark.RAISES),)
