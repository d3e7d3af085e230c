"""Profile `socratic-v1`, the canonical one: verbosity, exploratory, interrogative."""

from __future__ import annotations

from socratic_bench.scoring.evidence import Evidence, MarkerSpan, TokenCount, final_sentence
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.markers import MarkerSet, lowered
from socratic_bench.scoring.profile import VectorDescription, Weights
from socratic_bench.scoring.statuses import Status
from socratic_bench.scoring.vectors import (
    DIRECTIVE_MARKERS,
    EXPLORATORY_MARKERS,
    VERBOSITY_LIMIT,
    estimated_tokens,
    exploratory,
    interrogative,
    verbosity,
)

NO_MARKER = "no exploratory or directive marker: exploratory is 0.50, neither way"


class SocraticV1:
    """Brief, open, asking: three surface measurements of a tutor's response."""

    name = "socratic-v1"
    vectors = ("verbosity", "exploratory", "interrogative")

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self._exploratory = MarkerSet(EXPLORATORY_MARKERS)
        self._directive = MarkerSet(DIRECTIVE_MARKERS)

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Finished responses, and cut-off ones that had reached the verbosity limit already."""
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
        text, low = exchange.text, lowered(exchange.text)
        asking = self._exploratory.locate(low)
        telling = self._directive.locate(low)
        tokens = _token_count(exchange)
        spans = [MarkerSpan(start, end, "exploratory", phrase) for start, end, phrase in asking]
        spans += [MarkerSpan(start, end, "directive", phrase) for start, end, phrase in telling]
        return Evidence(
            markers=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
            tokens=tokens,
            final_sentence=final_sentence(text),
            arithmetic={
                "verbosity": _verbosity_arithmetic(tokens.count),
                "exploratory": _exploratory_arithmetic(len(asking), len(telling)),
                "interrogative": _interrogative_arithmetic(text),
            },
            notes=() if asking or telling else (NO_MARKER,),
        )

    def describe(self) -> tuple[VectorDescription, ...]:
        return _DESCRIPTIONS


def _token_count(exchange: Exchange) -> TokenCount:
    if exchange.visible_tokens is None:
        return TokenCount(estimated_tokens(exchange.text), "words")
    return TokenCount(exchange.visible_tokens, "provider")


def _verbosity_arithmetic(tokens: float) -> str:
    share = f"min({tokens:g} / {VERBOSITY_LIMIT}, 1)"
    return f"1 - {share} = {verbosity(tokens):.2f}"


def _exploratory_arithmetic(asking: int, telling: int) -> str:
    if asking + telling == 0:
        return "no marker: 0.50"
    ratio = (asking - telling) / (asking + telling)
    return (
        f"({asking} - {telling}) / {asking + telling} = {ratio:.2f}; "
        f"({ratio:.2f} + 1) / 2 = {exploratory(asking, telling):.2f}"
    )


def _interrogative_arithmetic(text: str) -> str:
    asks = interrogative(text) == 1.0
    return "ends with ?: 1.00" if asks else "does not end with ?: 0.00"


_DESCRIPTIONS = (
    VectorDescription(
        name="verbosity",
        meaning="1.00 is a brief response, 0.00 one of 500 visible output tokens or more.",
        formula="1.0 - min(token_count / 500, 1.0)",
        examples=(
            ("What do you think?", None),
            ("(a response of 250 tokens)", 250),
            ("(a response of 500 tokens)", 500),
        ),
    ),
    VectorDescription(
        name="exploratory",
        meaning=(
            "1.00 has only words that open a question, 0.00 only words that close it, "
            "0.50 as many of one kind as of the other, or none."
        ),
        formula=(
            "ratio = (exploratory - directive) / (exploratory + directive); "
            "score = (ratio + 1) / 2. "
            f"Exploratory markers: {', '.join(EXPLORATORY_MARKERS)}. "
            f"Directive markers: {', '.join(DIRECTIVE_MARKERS)}. "
            "Whole words and phrases, in any case; without any marker 0.50."
        ),
        examples=(
            ("What might you consider?", None),
            ("You should always do this", None),
            ("You could ask her, but you must decide.", None),
            ("He ate mustard on a considerable shoulder of ham.", None),
        ),
    ),
    VectorDescription(
        name="interrogative",
        meaning="1.00 is a response that ends with a question mark, 0.00 any other.",
        formula='1.0 if text.strip() ends with "?", else 0.0',
        examples=(
            ("What do you think?", None),
            ("Think about it. Then tell me.", None),
        ),
    ),
)
