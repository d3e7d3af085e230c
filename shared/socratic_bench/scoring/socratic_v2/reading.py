"""A response, normalised (D2), its body (D3 to D6), and its sentences with their roles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.socratic_v2.sentence_roles import (
    Role,
    StudentWords,
    numbers_of,
    roles_of,
)
from socratic_bench.scoring.socratic_v2.words import Sentence, keys_of, sentences_of, words_of

TRANSLATED: Final = {
    **dict.fromkeys("\u2019\u2018\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    "\uff1f": "?",
    "\uff01": "!",
    "\u3002": ".",
    **dict.fromkeys("\u00a0\t", " "),
    "\r": "\n",
    **dict.fromkeys("\u200b\u200c\u200d\ufe0f\ufeff", ""),
}
"""The character map of D2; no character of a value is a key."""

_ASCII: Final = tuple((old, new) for old, new in TRANSLATED.items() if old.isascii())
_ALL: Final = tuple(TRANSLATED.items())

_LABEL = re.compile(r"\A[ \n>*_#]*(?:assistant|teacher|tutor)[*_]* *:[ *_]*")
_RUN_ON = re.compile(
    r"\n[ >*_#]*(?:student|user|human|learner|assistant|teacher|tutor) ?[0-9]*[*_]* *:"
)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"\n *(?:>+|#+|[-*\u2022+](?= )|\(?[0-9]{1,2}[.)](?= )|\(?[a-z][.)](?= )) *")


def normalised(text: str) -> str:
    """Return `text` with mapped characters, in lower case (D2)."""
    # A chain of `replace` takes a tenth of the time of `translate` where a text is not ASCII.
    for old, new in _ASCII if text.isascii() else _ALL:
        text = text.replace(old, new)
    return text.lower()


def normalised_positions(text: str) -> list[int]:
    """Return, for each character of `normalised(text)`, the place in `text` that it comes from."""
    return [
        place
        for place, character in enumerate(text)
        for _ in TRANSLATED.get(character, character).lower()
    ]


class Body(NamedTuple):
    """The part of a response that sentences, numbers and equations are read from."""

    text: str
    fences: tuple[str, ...]
    """The code blocks that were taken out, with their fences."""

    is_cut: bool
    """Whether the response goes on as the student or as another tutor: that part is left out."""

    left_out: str
    """The other parts of the response: label, run-on, code blocks and bullets.

    No word and no number is partly in `text` and partly in here.
    """


def body_of(response: str) -> Body:
    """Return the body of a normalised response: no label, run-on, code block or bullet."""
    label, text, run_on = _parted(response)
    fences: list[str] = []
    if "```" in text:
        fences = _FENCE.findall(text)
        text = _FENCE.sub("\n", text)
    bullets = _BULLET.findall(text)
    if bullets:
        text = _BULLET.sub("\n", text)
    left_out = "\n".join((label, run_on, *fences, *bullets))
    return Body(text, tuple(fences), bool(run_on), left_out)


def _parted(response: str) -> tuple[str, str, str]:
    """Return the label, the text after a line feed, and the run-on from its line feed (D3, D4)."""
    label = _LABEL.match(response)
    begin = label.end() if label else 0
    text = "\n" + response[begin:]
    run_on = _RUN_ON.search(text)
    end = len(text) if run_on is None else run_on.start()
    return response[:begin], text[:end], text[end:]


class Layout(NamedTuple):
    """The places in the response of what `body_of` makes of it."""

    body: list[int]
    """For each character of the body, the place that it comes from."""

    fences: tuple[tuple[int, int], ...]
    """Start and end of each code block."""

    run_on: tuple[int, int] | None
    """Start and end of the part after the cut."""


def layout_of(response: str, positions: Sequence[int]) -> Layout:
    """Return the places of the body of a normalised response, given those of its characters."""
    if not positions:
        return Layout([], (), None)
    label, text, tail = _parted(response)
    begin = len(label)
    first = positions[min(begin, len(positions) - 1)]
    places = [first, *positions[begin : begin + len(text)]][: len(text)]
    run_on = None
    if tail:
        # The line feed before the run-on may be the one that was prepended.
        rest = positions[begin + max(len(text) - 1, 0) :]
        run_on = (rest[0], positions[-1] + 1)
    fences = tuple(
        (places[match.start()], places[match.end() - 1] + 1) for match in _FENCE.finditer(text)
    )
    text, places = _replaced(_FENCE, text, places)
    return Layout(_replaced(_BULLET, text, places)[1], fences, run_on)


def _replaced(pattern: re.Pattern[str], text: str, places: list[int]) -> tuple[str, list[int]]:
    """Replace each match by a line feed at its first place."""
    kept: list[int] = []
    at = 0
    for match in pattern.finditer(text):
        kept += places[at : match.start() + 1]
        at = match.end()
    kept += places[at:]
    return pattern.sub("\n", text), kept


class Said:
    """The student's message and the conversation before it."""

    def __init__(self, student: str, context: str, own: str = "") -> None:
        """`own` is what the tutor itself said before: its numbers are not new."""
        student, context = normalised(student), normalised(context)
        words, context_words = words_of(student), set(words_of(context))
        self.student = StudentWords(words)
        self.student_keys = keys_of(set(words))
        self.keys = self.student_keys | keys_of(context_words)
        self.has_words = bool(words or context_words)
        self._texts = (student, context)
        self._own = own

    @cached_property
    def numbers(self) -> set[str]:
        """The numbers of both, without commas."""
        student, context = self._texts
        return numbers_of(student) | numbers_of(context)

    @cached_property
    def known_numbers(self) -> set[str]:
        """The numbers that are no leak: those of the tutor's earlier replies, too."""
        return self.numbers | numbers_of(normalised(self._own))


class Reading(NamedTuple):
    """One response, read."""

    said: Said
    response: str
    """Normalised."""

    body: Body
    sentences: list[Sentence]
    roles: list[Role]
    """One per sentence."""

    @property
    def questions(self) -> list[Sentence]:
        """The genuine questions, in order."""
        pairs = zip(self.sentences, self.roles, strict=True)
        return [sentence for sentence, role in pairs if role is Role.QUESTION]


def reading_of(exchange: Exchange, *, counts_own_words: bool = True) -> Reading:
    """Read a response: the context is what both sides said in the earlier turns (D1).

    Without `counts_own_words` it is what the student said: a tutor grounds nothing in itself.
    """
    own = "\n".join(turn.tutor for turn in exchange.earlier_turns)
    context = "\n".join(turn.student for turn in exchange.earlier_turns)
    if counts_own_words:
        context = f"{context}\n{own}"
    said = Said(exchange.student_message, context, own)
    response = normalised(exchange.text)
    body = body_of(response)
    sentences = sentences_of(body.text)
    return Reading(said, response, body, sentences, roles_of(sentences, said.student))
