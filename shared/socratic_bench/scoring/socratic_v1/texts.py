"""The texts of `socratic-v1`: its vectors, its words for scores, its legend."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from socratic_bench.scoring.evidence import Mark, SpanKind
from socratic_bench.scoring.profile import ScoreRange, VectorDescription
from socratic_bench.scoring.socratic_v1.vectors import DIRECTIVE_MARKERS, EXPLORATORY_MARKERS

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
