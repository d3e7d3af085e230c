"""The evidence of `socratic-v1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from socratic_bench.scoring.evidence import Evidence, Fact, Span
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.length import estimated_tokens
from socratic_bench.scoring.socratic_v1.markers import MarkerSet, lowered
from socratic_bench.scoring.socratic_v1.sentences import final_sentence
from socratic_bench.scoring.socratic_v1.texts import (
    DESCRIPTIONS,
    DIRECTIVE,
    EXPLORATORY,
    FINAL_SENTENCE,
    NO_MARKER,
    NO_MARKER_WORD,
)
from socratic_bench.scoring.socratic_v1.vectors import (
    VERBOSITY_LIMIT,
    exploratory,
    interrogative,
    verbosity,
)

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
