"""The texts of `socratic-v2`: its vectors and its legend. `docs/socratic-v2.md` has the details."""

from __future__ import annotations

from typing import Final

from socratic_bench.scoring.evidence import Mark, SpanKind
from socratic_bench.scoring.profile import VectorDescription

QUESTION: Final = "question"
ECHO: Final = "echo"
OFFER: Final = "offer"
LEAK: Final = "leak"
RUN_ON: Final = "run_on"
UPTAKE: Final = "uptake"
FLAG: Final = "flag"
GROUND: Final = "ground"
NUMBER: Final = "number"

LEGEND: Final = (
    SpanKind(
        QUESTION,
        "genuine question",
        "A genuine question: it raises asking; the last sentence may raise closing.",
        Mark.PASSAGE,
    ),
    SpanKind(ECHO, "echo", "A sentence of the student's, word for word.", Mark.NEUTRAL),
    SpanKind(
        OFFER, "offer", "An offer of service in the form of a question: it is told.", Mark.NEUTRAL
    ),
    SpanKind(
        LEAK,
        "leak",
        "A telling phrase, a new number, an equation or code: it lowers withholding.",
        Mark.LOWERS,
    ),
    SpanKind(
        RUN_ON,
        "run-on",
        "The tutor writes the student's lines: this part is not read, and overall is halved.",
        Mark.LOWERS,
    ),
    SpanKind(UPTAKE, "uptake", "A word of the student's: it raises uptake.", Mark.RAISES),
    SpanKind(FLAG, "flag", "A word that points at a mistake: it raises flag.", Mark.NEUTRAL),
    SpanKind(
        GROUND,
        "said before",
        "A word of the conversation, the student's message included: it raises ground.",
        Mark.NEUTRAL,
    ),
    SpanKind(NUMBER, "number", "A number of the conversation: it raises numbers.", Mark.NEUTRAL),
)

OVERALL_FORMULA: Final = (
    "(asking + open + closing + uptake + substance) / 5 x (0.25 + 0.75 x withholding) "
    "x inquiry x restraint x solo x grounding"
)

_QUESTION: Final = "How could you check the sum of 12 and 5?"
_TELLING: Final = "The answer is 17, because 12 + 5 = 17."
_GENERIC: Final = "What do you think?"
_POINTING: Final = "Almost, but look again at the sum."


def _described(
    name: str, meaning: str, formula: str, *examples: str, yes: str | None = None
) -> VectorDescription:
    worked = tuple((text, None) for text in examples)
    return VectorDescription(name, meaning, formula, worked, yes=yes)


DESCRIPTIONS: Final = (
    _described(
        "asking",
        "1.00 has a genuine question in every third sentence or more, 0.00 none.",
        "min(1, 3 x genuine questions / sentences)",
        _QUESTION,
        _TELLING,
    ),
    _described(
        "open",
        "1.00 has a genuine question with an open word and a matter, 0.00 none.",
        "1 if a genuine question has an open word and a content key, else 0. "
        "Open words: what, how, why, which, where, when, who, whose.",
        _QUESTION,
        _GENERIC,
        yes="ask an open question",
    ),
    _described(
        "closing",
        "1.00 ends with a genuine question, 0.00 does not.",
        "1 if the last sentence is a genuine question, else 0",
        _GENERIC,
        _TELLING,
        yes="end with a genuine question",
    ),
    _described(
        "uptake",
        "1.00 takes up the student's words, 0.00 none of them.",
        "min(1, content keys shared with the student / max(3, content keys / 5)), without echoes",
        _QUESTION,
    ),
    _described(
        "substance",
        "1.00 has 15 words or more, 0.00 none.",
        "min(1, words / 15)",
        _QUESTION,
        _GENERIC,
    ),
    _described(
        "withholding",
        "1.00 keeps the answer back, 0.00 gives it away twice or more.",
        "1 - min(1, leaks / 2); leaks: code blocks, sentences with a telling phrase, "
        "numbers that nobody said before, equations",
        _GENERIC,
        _TELLING,
    ),
    _described(
        "ground",
        "Reading dimension: 1.00 speaks of what was said before, 0.00 of none of it.",
        "min(1, content keys said before / max(1, content keys) / 0.6)",
        _QUESTION,
    ),
    _described(
        "flag",
        "Reading dimension: 1.00 points at a mistake twice or more, 0.00 never.",
        "min(1, flags / 2)",
        _POINTING,
        _QUESTION,
    ),
    _described(
        "numbers",
        "Reading dimension: 1.00 takes up three numbers of the conversation, 0.00 none.",
        "min(1, numbers said before / 3)",
        _QUESTION,
    ),
    _described(
        "form",
        "The overall itself, beside the dimensions that are made of it.",
        f"{OVERALL_FORMULA}. inquiry: 1 with a genuine question, else 0.5. "
        "restraint: 1 - clamp((words of exposition - 60) / 180). solo: 0.5 if the tutor writes "
        "the student's lines, else 1. grounding: 0.5 if nothing said before is taken up, else 1.",
        _QUESTION,
        _TELLING,
    ),
    _described(
        "guide",
        "Reading dimension: 1.00 guides, in form and in what it takes up.",
        "(form + ground) / 2",
        _QUESTION,
    ),
    _described(
        "notice",
        "Reading dimension: 1.00 notices a mistake in what was said.",
        "(flag + ground) / 2",
        _POINTING,
    ),
    _described(
        "locate",
        "Reading dimension: 1.00 shows where in the student's work a mistake is.",
        "(flag + ground + numbers) / 3",
        _POINTING,
    ),
)
