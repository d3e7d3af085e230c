"""The evidence of `socratic-v2`, and its texts, which `docs/socratic-v2.md` explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from socratic_bench.scoring.evidence import Evidence, Fact, Mark, Span, SpanKind
from socratic_bench.scoring.profile import VectorDescription
from socratic_bench.scoring.socratic_v2.reading import (
    Layout,
    Reading,
    layout_of,
    normalised_positions,
)
from socratic_bench.scoring.socratic_v2.sentence_roles import (
    EQUATION,
    NUMBER,
    Role,
    is_open,
    telling_phrases,
    tells,
)
from socratic_bench.scoring.socratic_v2.vectors import (
    Counts,
    Dimensions,
    Form,
    counts_of,
    dimensions_of,
    form_of,
)
from socratic_bench.scoring.socratic_v2.words import (
    KEY_LENGTH,
    WORD,
    Sentence,
    flags_in,
    is_content,
)

QUESTION: Final = "question"
ECHO: Final = "echo"
OFFER: Final = "offer"
LEAK: Final = "leak"
RUN_ON: Final = "run_on"
UPTAKE: Final = "uptake"
FLAG: Final = "flag"
GROUND: Final = "ground"
NUMBER_SPAN: Final = "number"

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
    SpanKind(
        NUMBER_SPAN, "number", "A number of the conversation: it raises numbers.", Mark.NEUTRAL
    ),
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


_SENTENCE_KINDS = {
    Role.QUESTION: QUESTION,
    Role.ECHO: ECHO,
    Role.OFFER: OFFER,
}


def evidence_of(text: str, reading: Reading) -> Evidence:
    """Return the evidence for one response, given its reading."""
    counts = counts_of(reading)
    form = form_of(reading, counts)
    spans = sorted(_spans(text, reading), key=lambda span: (span.start, span.end))
    facts = _facts(counts, form, dimensions_of(form.overall, counts))
    return Evidence(tuple(spans), facts)


def sentence_spans(text: str, reading: Reading, layout: Layout) -> Iterator[Span]:
    """Return the genuine questions, the echoes and the offers of a response."""
    for sentence, role in zip(reading.sentences, reading.roles, strict=True):
        if kind := _SENTENCE_KINDS.get(role):
            first = next(WORD.finditer(reading.body.text, sentence.start, sentence.end))
            end = _visible_end(reading, sentence)
            whole = _span(layout.body, first.start(), end, kind, "")
            yield Span(whole.start, whole.end, kind, text[whole.start : whole.end])


def _spans(text: str, reading: Reading) -> Iterator[Span]:
    positions = normalised_positions(text)
    layout = layout_of(reading.response, positions)
    for start, end in layout.fences:
        yield Span(start, end, LEAK, "code")
    if layout.run_on is not None:
        yield Span(*layout.run_on, RUN_ON, "run-on")
    for start, end, flag in flags_in(reading.response):
        yield _span(positions, start, end, FLAG, flag)
    yield from sentence_spans(text, reading, layout)
    for sentence, role in zip(reading.sentences, reading.roles, strict=True):
        yield from _of_sentence(reading, layout, sentence, role)
    yield from _said_before(reading, positions)
    body = reading.body.text
    for match in NUMBER.finditer(body):
        if (number := match[0].replace(",", "")) not in reading.said.known_numbers:
            yield _span(layout.body, *match.span(), LEAK, number)
    for match in EQUATION.finditer(body):
        yield _span(layout.body, *match.span(), LEAK, "equation")


def _said_before(reading: Reading, positions: list[int]) -> Iterator[Span]:
    """Return the words and numbers of the whole response that the conversation has, too."""
    for word in WORD.finditer(reading.response):
        if is_content(word[0]) and word[0][:KEY_LENGTH] in reading.said.keys:
            yield _span(positions, *word.span(), GROUND, word[0])
    for match in NUMBER.finditer(reading.response):
        if (number := match[0].replace(",", "")) in reading.said.numbers:
            yield _span(positions, *match.span(), NUMBER_SPAN, number)


def _of_sentence(
    reading: Reading, layout: Layout, sentence: Sentence, role: Role
) -> Iterator[Span]:
    """Return the spans of what one sentence takes up and what it tells."""
    words = list(WORD.finditer(reading.body.text, sentence.start, sentence.end))
    if role is not Role.ECHO:
        for word in words:
            if is_content(word[0]) and word[0][:KEY_LENGTH] in reading.said.student_keys:
                yield _span(layout.body, *word.span(), UPTAKE, word[0])
    if tells(sentence) and not (role is Role.QUESTION and is_open(sentence)):
        for first, last, phrase in telling_phrases(sentence):
            start, end = words[first].start(), words[last].end()
            yield _span(layout.body, start, end, LEAK, phrase)


def _visible_end(reading: Reading, sentence: Sentence) -> int:
    body = reading.body.text
    return sentence.start + len(body[sentence.start : sentence.end].rstrip())


def _span(positions: list[int], start: int, end: int, kind: str, label: str) -> Span:
    return Span(positions[start], positions[end - 1] + 1, kind, label)


def _facts(counts: Counts, form: Form, dimensions: Dimensions) -> dict[str, Fact]:
    """Return the arithmetic of each vector, in the order of the vectors."""
    n, q, c = counts.sentences, counts.questions, counts
    ground, flag, numbers, _, guide, notice, locate = dimensions
    six = form.asking + form.open + form.closing + form.uptake + form.substance
    facts = {
        "asking": Fact(f"min(1, 3 x {q} / {n}) = {form.asking:.4f}", {"questions": q}),
        "open": Fact(f"an open question with a matter: {form.open:.0f}"),
        "closing": Fact(f"the last sentence is a genuine question: {form.closing:.0f}"),
        "uptake": Fact(
            f"min(1, {c.student_keys} / max(3, {c.keys} / 5)) = {form.uptake:.4f}",
            {"shared_keys": c.student_keys, "keys": c.keys},
        ),
        "substance": Fact(f"min(1, {c.words} / 15) = {form.substance:.4f}", {"words": c.words}),
        "withholding": Fact(
            f"1 - min(1, {c.leaks} / 2) = {form.withholding:.4f}",
            {
                "telling": c.telling,
                "new_numbers": c.new_numbers,
                "equations": c.equations,
                "code_blocks": c.fences,
            },
        ),
        "ground": Fact(
            f"min(1, {c.said_keys} / {max(1, c.response_keys)} / 0.6) = {ground:.4f}",
            {"said_keys": c.said_keys, "keys": c.response_keys},
        ),
        "flag": Fact(f"min(1, {c.flags} / 2) = {flag:.4f}", {"flags": c.flags}),
        "numbers": Fact(
            f"min(1, {c.said_numbers} / 3) = {numbers:.4f}", {"said_numbers": c.said_numbers}
        ),
        "form": Fact(
            f"{six:.4f} / 5 x (0.25 + 0.75 x {form.withholding:.4f}) x {form.inquiry:g} "
            f"x {form.restraint:.4f} x {form.solo:g} x {form.grounding:g} = {form.overall:.4f}",
            {
                "inquiry": form.inquiry,
                "restraint": form.restraint,
                "solo": form.solo,
                "grounding": form.grounding,
                "load": c.load,
            },
        ),
        "guide": Fact(f"({form.overall:.4f} + {ground:.4f}) / 2 = {guide:.4f}"),
        "notice": Fact(f"({flag:.4f} + {ground:.4f}) / 2 = {notice:.4f}"),
        "locate": Fact(f"({flag:.4f} + {ground:.4f} + {numbers:.4f}) / 3 = {locate:.4f}"),
    }
    if n == 0:
        nothing = Fact("no sentence: 0.0000")
        facts |= dict.fromkeys(Form._fields[:6], nothing)
        facts["form"] = Fact("no sentence: 0.0000", facts["form"].values)
    return facts
