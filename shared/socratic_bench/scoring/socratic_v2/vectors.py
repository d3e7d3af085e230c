"""The vectors of `socratic-v2` (D14 to D21) and its reading dimensions, as pure functions.

The order of the floating-point operations is part of the definition: equal texts give equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from socratic_bench.scoring.socratic_v2.reading import Reading
from socratic_bench.scoring.socratic_v2.sentence_roles import (
    Role,
    equations_in,
    is_open,
    numbers_of,
    opens,
    tells,
)
from socratic_bench.scoring.socratic_v2.words import flags_in, keys_of, words_of

FREE_WORDS: Final = 60
"""Words of load that cost nothing."""

LOAD_RANGE: Final = 180
"""Words beyond FREE_WORDS that take restraint from 1.0 to 0.0."""

FREE_QUESTIONS: Final = 3
"""Questions whose words are no load."""

GROUNDED_SHARE: Final = 0.6
"""The share of content keys from the conversation at which ground reaches 1.0."""


class Counts(NamedTuple):
    """The whole numbers that the figures are made of."""

    sentences: int
    questions: int
    words: int
    keys: int
    """Content keys of the sentences that are no echo."""

    student_keys: int
    """Those of them that the student's message has too."""

    telling: int
    """Sentences that tell, with closed questions that do."""

    new_numbers: int
    """Numbers of the body that were not said before."""

    equations: int
    fences: int
    load: int
    """Words of exposition."""

    response_keys: int
    """Content keys of the whole response."""

    said_keys: int
    """Those of them that were said before."""

    said_numbers: int
    """Numbers of the whole response that were said before."""

    flags: int

    @property
    def leaks(self) -> int:
        """What gives the answer away (D19, D19a)."""
        return self.fences + self.telling + self.new_numbers + self.equations


class Form(NamedTuple):
    """The six vectors of the form, the guards and their product."""

    asking: float
    open: float
    closing: float
    uptake: float
    substance: float
    withholding: float
    inquiry: float
    restraint: float
    solo: float
    grounding: float
    overall: float


class Dimensions(NamedTuple):
    """The reading dimensions."""

    ground: float
    flag: float
    numbers: float
    form: float
    guide: float
    notice: float
    locate: float


def counts_of(reading: Reading) -> Counts:
    """Return the counts of a response."""
    questions = telling = words = load = 0
    heard: set[str] = set()
    others = set(words_of(reading.body.left_out))
    for sentence, role in zip(reading.sentences, reading.roles, strict=True):
        size = len(sentence.words)
        words += size
        (others if role is Role.ECHO else heard).update(sentence.words)
        is_question = role is Role.QUESTION
        questions += is_question
        if not is_question or questions > FREE_QUESTIONS:
            load += size
        if tells(sentence) and not (is_question and is_open(sentence)):
            telling += 1
    load += sum(len(words_of(fence)) for fence in reading.body.fences)
    said = reading.said
    keys, in_body = keys_of(heard), numbers_of(reading.body.text)
    # The words and numbers of the whole response are those of the body and of the rest.
    response_keys = keys | keys_of(others)
    numbers = in_body | numbers_of(reading.body.left_out)
    return Counts(
        sentences=len(reading.sentences),
        questions=questions,
        words=words,
        keys=len(keys),
        student_keys=len(keys & said.student_keys),
        telling=telling,
        new_numbers=len(in_body - said.known_numbers) if in_body else 0,
        equations=equations_in(reading.body.text),
        fences=len(reading.body.fences),
        load=load,
        response_keys=len(response_keys),
        said_keys=len(response_keys & said.keys),
        said_numbers=len(numbers & said.numbers) if numbers else 0,
        flags=len(flags_in(reading.response)),
    )


def form_of(reading: Reading, counts: Counts) -> Form:
    """Return the form of a response (D14 to D21); without sentences its vectors are 0.0."""
    grounding = 0.5 if reading.said.has_words and not counts.said_keys else 1.0
    n, q = counts.sentences, counts.questions
    if n == 0:
        return Form(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, grounding, 0.0)
    asking = min(1.0, 3 * q / n)
    open_ = 1.0 if any(map(opens, reading.questions)) else 0.0
    closing = 1.0 if reading.roles[-1] is Role.QUESTION else 0.0
    uptake = min(1.0, counts.student_keys / max(3, counts.keys / 5))
    substance = min(1.0, counts.words / 15)
    withholding = 1.0 - min(1.0, counts.leaks / 2)
    inquiry = 1.0 if q else 0.5
    restraint = 1.0 - min(1.0, max(0.0, (counts.load - FREE_WORDS) / LOAD_RANGE))
    solo = 0.5 if reading.body.is_cut else 1.0
    overall = (
        (asking + open_ + closing + uptake + substance)
        / 5
        * (0.25 + 0.75 * withholding)
        * inquiry
        * restraint
        * solo
        * grounding
    )
    return Form(
        asking,
        open_,
        closing,
        uptake,
        substance,
        withholding,
        inquiry,
        restraint,
        solo,
        grounding,
        overall,
    )


def without(vector: str, six: Sequence[float], form: float) -> float:
    """Return the overall as it would be without one vector, for an ablation.

    The mean is that of the others, or withholding costs nothing. The guards stay: they are the
    quotient of `form` and of what the six vectors make.
    """
    names = Form._fields[:6]
    if vector not in names:
        return form
    *parts, withholding = six
    made = sum(parts) / 5 * (0.25 + 0.75 * withholding)
    if not made:
        return 0.0
    if vector == "withholding":
        withholding = 1.0
    kept = [part for name, part in zip(names, parts, strict=False) if name != vector]
    guards = form / made
    return min(1.0, sum(kept) / len(kept) * (0.25 + 0.75 * withholding) * guards)


def dimensions_of(form: float, counts: Counts) -> Dimensions:
    """Return the reading dimensions, given the overall of the form."""
    ground = min(1.0, counts.said_keys / max(1, counts.response_keys) / GROUNDED_SHARE)
    flag = min(1.0, counts.flags / 2)
    numbers = min(1.0, counts.said_numbers / 3)
    return Dimensions(
        ground=ground,
        flag=flag,
        numbers=numbers,
        form=form,
        guide=(form + ground) / 2,
        notice=(flag + ground) / 2,
        locate=(flag + ground + numbers) / 3,
    )
