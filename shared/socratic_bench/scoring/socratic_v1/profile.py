"""The recipe of `socratic-v1`: brief, open, asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from socratic_bench.scoring.evidence import Evidence, Fact, Mark, Span, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.length import estimated_tokens, words_and_marks
from socratic_bench.scoring.profile import (
    CANONICAL,
    SAME_RULER,
    ScoreRange,
    VectorDescription,
    Weights,
)
from socratic_bench.scoring.socratic_v1.vectors import (
    DIRECTIVE_MARKERS,
    EXPLORATORY_MARKERS,
    VERBOSITY_LIMIT,
    MarkerSet,
    exploratory,
    final_sentence,
    interrogative,
    lowered,
    verbosity,
)

EXPLORATORY: Final = "exploratory"
DIRECTIVE: Final = "directive"
FINAL_SENTENCE: Final = "final_sentence"

NO_MARKER: Final = "no exploratory or directive marker: exploratory is 0.50, neither way"
NO_MARKER_WORD: Final = "no marker"

LEGEND: Final = (
    SpanKind(
        EXPLORATORY,
        "exploratory",
        "A marker that opens a question: it raises exploratory.",
        Mark.RAISES,
    ),
    SpanKind(
        DIRECTIVE,
        "directive",
        "A marker that tells the student: it lowers exploratory.",
        Mark.LOWERS,
    ),
    SpanKind(
        FINAL_SENTENCE,
        "final sentence",
        "The last sentence: interrogative reads how it ends.",
        Mark.PASSAGE,
    ),
)

DESCRIPTIONS: Final[dict[str, VectorDescription]] = {
    description.name: description
    for description in (
        VectorDescription(
            name="verbosity",
            meaning=(
                "1.00 is a brief response, 0.00 one of 500 visible output tokens or more: "
                "the name says verbosity, the score rewards brevity."
            ),
            formula="1.0 - min(token_count / 500, 1.0)",
            examples=(
                ("What do you think?", None),
                ("(a response of 250 tokens)", 250),
                ("(a response of 500 tokens)", 500),
            ),
            ranges=(
                ScoreRange(0.8, "brief"),
                ScoreRange(0.5, "medium"),
                ScoreRange(0.0, "long"),
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
            ranges=(
                ScoreRange(0.6, "open"),
                ScoreRange(0.4, "balanced"),
                ScoreRange(0.0, "telling"),
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
            ranges=(
                ScoreRange(1.0, "asks last"),
                ScoreRange(0.0, "does not ask last"),
            ),
            yes="ask",
        ),
    )
}

SAME_RULER_DESCRIPTIONS: Final = {
    **DESCRIPTIONS,
    "verbosity": replace(
        DESCRIPTIONS["verbosity"],
        meaning=(
            "1.00 is a brief response, 0.00 one of 500 words and marks or more, whatever tokens "
            "its provider counted."
        ),
        formula=(
            "1.0 - min(count / 500, 1.0), the count by one ruler for all models: a word, the "
            "ending of a contraction, up to three digits, a blank before a digit and a mark are "
            "one each; letters of other scripts count by a constant of the script."
        ),
        examples=(("What do you think?", None),),
    ),
}


PROVIDER: Final = "provider"
RULER: Final = "words and marks"
"""Who counted the tokens of a response, where they are not estimated from its words."""


def evidence_of(
    exchange: Exchange, opening: MarkerSet, closing: MarkerSet, counter: str
) -> Evidence:
    """Return the evidence for one response: `opening` are the exploratory markers, `closing` the
    directive ones, `counter` is who counted its tokens.
    """
    text, low = exchange.text, lowered(exchange.text)
    asking, telling = opening.locate(low), closing.locate(low)
    spans = [
        *(Span(start, end, EXPLORATORY, phrase) for start, end, phrase in asking),
        *(Span(start, end, DIRECTIVE, phrase) for start, end, phrase in telling),
        *_final_sentence(text),
    ]
    return Evidence(
        spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
        facts={
            "verbosity": _verbosity(exchange, counter),
            "exploratory": _exploratory(len(asking), len(telling)),
            "interrogative": _interrogative(text),
        },
        notes=() if asking or telling else (NO_MARKER,),
    )


def _final_sentence(text: str) -> Sequence[Span]:
    place = final_sentence(text)
    return () if place is None else (Span(*place, FINAL_SENTENCE, text[slice(*place)]),)


def _verbosity(exchange: Exchange, counter: str) -> Fact:
    counted = exchange.visible_tokens
    tokens = estimated_tokens(exchange.text) if counted is None else counted
    score = verbosity(tokens)
    return Fact(
        sentence=f"1 - min({tokens:g} / {VERBOSITY_LIMIT}, 1) = {score:.2f}",
        values={"token_count": tokens, "token_source": "words" if counted is None else counter},
        word=DESCRIPTIONS["verbosity"].word_for(score),
    )


def _exploratory(asking: int, telling: int) -> Fact:
    score = exploratory(asking, telling)
    values = {"exploratory_markers": asking, "directive_markers": telling}
    if asking + telling == 0:
        return Fact(sentence="no marker: 0.50", values=values, word=NO_MARKER_WORD)
    ratio = (asking - telling) / (asking + telling)
    sentence = (
        f"({asking} - {telling}) / {asking + telling} = {ratio:.2f}; "
        f"({ratio:.2f} + 1) / 2 = {score:.2f}"
    )
    word = DESCRIPTIONS["exploratory"].word_for(score)
    return Fact(sentence=sentence, values={**values, "ratio": ratio}, word=word)


def _interrogative(text: str) -> Fact:
    score = interrogative(text)
    sentence = "ends with ?: 1.00" if score else "does not end with ?: 0.00"
    return Fact(sentence=sentence, word=DESCRIPTIONS["interrogative"].word_for(score))


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
