"""The reference tutors: deterministic archetypes of tutoring, each labelled as not a model.

They need no key and no network, cost nothing and answer at once, so they serve trials, tests and
measurements of the benchmark. Scenario, repeat and turn alone determine their answers. The
archetype `student` plays the student where a configuration has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Protocol

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.built_in import ReferenceOptions
from socratic_bench.providers.options import known_name, read_options
from socratic_bench.scoring.exchange import Status
from socratic_runner.models.access import Access
from socratic_runner.models.archetypes import hedger, lecturer, socratic, student
from socratic_runner.models.archetypes.faulty import FaultyTutor
from socratic_runner.models.archetypes.moment import Moment, input_tokens_of, tokens_of

MODEL_VERSION: Final = "reference-1"
VARIANTS: Final = 32
"""The number of different repeats of a turn: repeat 33 equals repeat 1."""

_KEPT_ANSWERS = 2048


class Archetype(Protocol):
    """The client's view of an archetype: it returns a reply, or raises ModelCallFailed."""

    def reply(self, question: Question) -> Reply: ...


class WritingTutor:
    """An archetype that always answers with a text of its own; not a model."""

    def __init__(self, name: str, write: Callable[[Moment], str], latency_ms: int) -> None:
        self._name = name
        self._write = write
        self._latency_ms = latency_ms
        self._answer = lru_cache(maxsize=_KEPT_ANSWERS)(self._compose)

    def reply(self, question: Question) -> Reply:
        run = question.run
        text, tokens = self._answer(
            run.scenario_id,
            run.dimension,
            question.student_message,
            question.turn,
            run.repeat % VARIANTS,
        )
        return Reply(
            text=text,
            status=Status.OK,
            usage=Usage(visible_output_tokens=tokens, input_tokens=input_tokens_of(question)),
            latency_ms=self._latency_ms,
            stop_reason="stop",
            model_version=MODEL_VERSION,
        )

    def _compose(
        self, scenario_id: str, dimension: str, message: str, turn: int, variant: int
    ) -> tuple[str, int]:
        text = self._write(Moment(self._name, scenario_id, dimension, message, turn, variant))
        return text, tokens_of(text)


class ReferenceClient:
    """Asks an archetype, after its simulated latency."""

    concurrency: int | None = None

    def __init__(self, archetype: Archetype, latency_ms: int) -> None:
        self._archetype = archetype
        self._latency_ms = latency_ms
        self.answers_at_once = latency_ms == 0 and isinstance(archetype, WritingTutor)

    async def ask(self, question: Question) -> Reply:
        if self._latency_ms:
            await asyncio.sleep(self._latency_ms / 1000)
        return self._archetype.reply(question)

    async def close(self) -> None:
        """Do nothing."""


ARCHETYPES: Final[dict[str, Callable[[int], Archetype]]] = {
    "socratic": partial(WritingTutor, "socratic", socratic.answer),
    "lecturer": partial(WritingTutor, "lecturer", lecturer.answer),
    "hedger": partial(WritingTutor, "hedger", hedger.answer),
    "drifter": partial(WritingTutor, "drifter", lecturer.drift),
    "faulty": FaultyTutor,
    "student": partial(WritingTutor, "student", student.message),
}


def check_access(model: TutorModel, access: Access) -> None:
    """Do nothing: a reference tutor has no requirements."""


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for a reference tutor."""
    latency_ms = read_options(model, ReferenceOptions).latency_ms
    archetype = ARCHETYPES[known_name(model, tuple(ARCHETYPES))]
    return ReferenceClient(archetype(latency_ms), latency_ms)
