"""The evidence of `socratic-v2`."""

from __future__ import annotations

from collections.abc import Iterator

from socratic_bench.scoring.evidence import Evidence, Fact, Span
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.socratic_v2 import texts
from socratic_bench.scoring.socratic_v2.flags import flags_in
from socratic_bench.scoring.socratic_v2.leaks import EQUATION, NUMBER, telling_phrases, tells
from socratic_bench.scoring.socratic_v2.normalisation import (
    Layout,
    layout_of,
    normalised_positions,
)
from socratic_bench.scoring.socratic_v2.questions import Role, is_open
from socratic_bench.scoring.socratic_v2.reading import Reading, reading_of
from socratic_bench.scoring.socratic_v2.sentences import Sentence
from socratic_bench.scoring.socratic_v2.vectors import (
    Counts,
    Dimensions,
    Form,
    counts_of,
    dimensions_of,
    form_of,
)
from socratic_bench.scoring.socratic_v2.words import KEY_LENGTH, WORD, is_content

_SENTENCE_KINDS = {
    Role.QUESTION: texts.QUESTION,
    Role.ECHO: texts.ECHO,
    Role.OFFER: texts.OFFER,
}


def evidence_of(exchange: Exchange) -> Evidence:
    """Return the evidence for one response."""
    reading = reading_of(exchange)
    counts = counts_of(reading)
    form = form_of(reading, counts)
    spans = sorted(_spans(exchange.text, reading), key=lambda span: (span.start, span.end))
    facts = _facts(counts, form, dimensions_of(form.overall, counts))
    return Evidence(tuple(spans), facts)


def _spans(text: str, reading: Reading) -> Iterator[Span]:
    positions = normalised_positions(text)
    layout = layout_of(reading.response, positions)
    for start, end in layout.fences:
        yield Span(start, end, texts.LEAK, "code")
    if layout.run_on is not None:
        yield Span(*layout.run_on, texts.RUN_ON, "run-on")
    for start, end, flag in flags_in(reading.response):
        yield _span(positions, start, end, texts.FLAG, flag)
    for sentence, role in zip(reading.sentences, reading.roles, strict=True):
        yield from _of_sentence(text, reading, layout, sentence, role)
    yield from _said_before(reading, positions)
    body = reading.body.text
    for match in NUMBER.finditer(body):
        if (number := match[0].replace(",", "")) not in reading.said.numbers:
            yield _span(layout.body, *match.span(), texts.LEAK, number)
    for match in EQUATION.finditer(body):
        yield _span(layout.body, *match.span(), texts.LEAK, "equation")


def _said_before(reading: Reading, positions: list[int]) -> Iterator[Span]:
    """Return the words and numbers of the whole response that the conversation has, too."""
    for word in WORD.finditer(reading.response):
        if is_content(word[0]) and word[0][:KEY_LENGTH] in reading.said.keys:
            yield _span(positions, *word.span(), texts.GROUND, word[0])
    for match in NUMBER.finditer(reading.response):
        if (number := match[0].replace(",", "")) in reading.said.numbers:
            yield _span(positions, *match.span(), texts.NUMBER, number)


def _of_sentence(
    text: str, reading: Reading, layout: Layout, sentence: Sentence, role: Role
) -> Iterator[Span]:
    """Return the spans of one sentence: its kind, what it takes up and what it tells."""
    words = list(WORD.finditer(reading.body.text, sentence.start, sentence.end))
    if kind := _SENTENCE_KINDS.get(role):
        whole = _span(layout.body, words[0].start(), _visible_end(reading, sentence), kind, "")
        yield Span(whole.start, whole.end, kind, text[whole.start : whole.end])
    if role is not Role.ECHO:
        for word in words:
            if is_content(word[0]) and word[0][:KEY_LENGTH] in reading.said.student_keys:
                yield _span(layout.body, *word.span(), texts.UPTAKE, word[0])
    if tells(sentence) and not (role is Role.QUESTION and is_open(sentence)):
        for first, last, phrase in telling_phrases(sentence):
            start, end = words[first].start(), words[last].end()
            yield _span(layout.body, start, end, texts.LEAK, phrase)


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
