"""A response, read: its body, its sentences and their roles, beside what was said before it."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.socratic_v2.echoes import StudentWords
from socratic_bench.scoring.socratic_v2.leaks import numbers_of
from socratic_bench.scoring.socratic_v2.normalisation import Body, body_of, normalised
from socratic_bench.scoring.socratic_v2.questions import Role, roles_of
from socratic_bench.scoring.socratic_v2.sentences import Sentence, sentences_of
from socratic_bench.scoring.socratic_v2.words import keys_of, words_of


class Said:
    """The student's message and the conversation before it."""

    def __init__(self, student: str, context: str) -> None:
        student, context = normalised(student), normalised(context)
        words, context_words = words_of(student), set(words_of(context))
        self.student = StudentWords(words)
        self.student_keys = keys_of(set(words))
        self.keys = self.student_keys | keys_of(context_words)
        self.has_words = bool(words or context_words)
        self._texts = (student, context)

    @cached_property
    def numbers(self) -> set[str]:
        """The numbers of both, without commas."""
        student, context = self._texts
        return numbers_of(student) | numbers_of(context)


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


def reading_of(exchange: Exchange) -> Reading:
    """Read a response: the context is what both sides said in the earlier turns (D1)."""
    context = "\n".join(
        message for turn in exchange.earlier_turns for message in (turn.student, turn.tutor)
    )
    said = Said(exchange.student_message, context)
    response = normalised(exchange.text)
    body = body_of(response)
    sentences = sentences_of(body.text)
    return Reading(said, response, body, sentences, roles_of(sentences, said.student))
