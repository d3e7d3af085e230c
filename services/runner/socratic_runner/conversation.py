"""Carrying out runs: turn after turn, each response stored before anything else happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.identifiers import sampling_seed
from socratic_bench.domain.manifest import Manifest
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.errors import ModelCallFailed, SocraticBenchError
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import FailureKind, Question, Reply
from socratic_bench.ports.store import TurnKey
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.statuses import effective_status
from socratic_runner.clients import Tutor

log = structlog.get_logger(__name__)


class TurnHeldElsewhere(SocraticBenchError):
    """Another runner holds the lease of a turn; its response will come from there."""


class TurnPutOff(SocraticBenchError):
    """The runner is draining: no call is begun any more."""


class TurnFailed(SocraticBenchError):
    """A turn got no response after all its tries."""

    def __init__(self, turn: int, failure: ModelCallFailed, attempts: int) -> None:
        super().__init__(str(failure))
        self.turn = turn
        self.kind = failure.kind
        self.attempts = attempts


class Lease(NamedTuple):
    """A request to call a model for one turn, until a time."""

    experiment_id: str
    key: TurnKey
    now: datetime
    until: datetime


@dataclass(slots=True, eq=False)
class Conversation:
    """One run under way."""

    run: Run
    manifest: Manifest
    responses: list[Response] = field(default_factory=list)
    """Its stored responses, in the order of their turns."""

    ended_by: TurnFailed | TurnHeldElsewhere | TurnPutOff | None = None
    """What keeps it from going on."""

    @property
    def open(self) -> bool:
        """Whether it has another turn to take."""
        over = bool(self.responses) and self.responses[-1].last_turn
        return not over and self.ended_by is None

    def question(self) -> Question:
        """What its model is asked next."""
        messages = self.manifest.scenarios_by_id[self.run.scenario_id].student_messages
        turn = len(self.responses) + 1
        return Question(
            run=self.run,
            turn=turn,
            system_prompt=self.manifest.system_prompt,
            student_message=messages[turn - 1],
            earlier_turns=tuple(
                EarlierTurn(response.student_message, response.text) for response in self.responses
            ),
            parameters=self.manifest.parameters,
            seed=sampling_seed(self.run.run_id, turn),
        )

    def response(self, question: Question, answer: Answer, tutor: Tutor, now: datetime) -> Response:
        """What is recorded of an answer."""
        reply, usage = answer.reply, answer.reply.usage
        turns = self.manifest.scenarios_by_id[self.run.scenario_id].turns
        return Response(
            run=self.run,
            turn=question.turn,
            last_turn=question.turn == turns,
            profile=self.manifest.profile,
            student_message=question.student_message,
            earlier_turns=question.earlier_turns,
            text=reply.text,
            status=effective_status(reply.status, reply.text),
            usage=usage,
            latency_ms=reply.latency_ms,
            cost_nanodollars=tutor.cost_nanodollars(usage),
            stop_reason=reply.stop_reason,
            model_version=reply.model_version,
            attempts=answer.attempts,
            recorded_at=now,
        )


class Answer(NamedTuple):
    """A reply, and the calls it took."""

    reply: Reply
    attempts: int


@dataclass(frozen=True, slots=True)
class Conversations:
    """Carries out conversations with one tutor, with the store's promises around every call.

    Those given together take their turns together: one transaction leases a turn of all, another
    records it. That pays where the tutor answers at once, and would make them wait for each other
    where it does not; such a tutor's conversations are carried out each by itself.
    """

    lease: Callable[[Sequence[Lease]], Awaitable[Sequence[bool]]]
    """Take turns for a call; False for those that another runner holds."""

    record: Callable[[Sequence[Response]], Awaitable[Sequence[Response]]]
    """Store responses; returns what is stored for their turns, since the first write wins."""

    clock: Clock
    retry_policy: RetryPolicy
    lease_margin: timedelta
    """How much longer than the deadline of a call its lease lasts."""

    draining: asyncio.Event
    """Once set, calls in flight are finished and no other is begun."""

    def longest(self, run: Run, manifest: Manifest) -> float:
        """Seconds that whoever has a run may be at work on it; after that it is done, or they are
        dead and their lease has run out. Waiting for a slot is not in it.
        """
        calls = manifest.scenarios_by_id[run.scenario_id].turns * self.retry_policy.attempts
        deadline = manifest.models_by_id[run.model_id].limits.timeout_seconds
        between = self.retry_policy.longest_delay
        return calls * (deadline + between) + self.lease_margin.total_seconds()

    async def carry_out(
        self, tutor: Tutor, conversations: Sequence[Conversation]
    ) -> AsyncGenerator[None, None]:
        """Take turn after turn until none is open; yields after each, when it is recorded."""
        while going_on := [each for each in conversations if each.open]:
            await self._take_turn(tutor, going_on)
            yield

    async def _take_turn(self, tutor: Tutor, conversations: Sequence[Conversation]) -> None:
        questions = {each: each.question() for each in conversations}
        answers = await self._ask(tutor, questions)
        now = self.clock.now()
        responses = [
            each.response(questions[each], answer, tutor, now) for each, answer in answers.items()
        ]
        if responses:
            for each, stored in zip(answers, await self.record(responses), strict=True):
                each.responses.append(stored)

    async def _ask(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Answer]:
        """The answers that came; the other conversations are marked with what ended them."""
        answers: dict[Conversation, Answer] = {}
        attempt = 0
        while questions:
            attempt += 1
            again: dict[Conversation, Question] = {}
            delay = 0.0
            for each, result in (await self._call(tutor, questions)).items():
                if isinstance(result, Reply):
                    answers[each] = Answer(result, attempt)
                elif not isinstance(result, ModelCallFailed):
                    each.ended_by = result
                elif not result.retryable or self.retry_policy.exhausted(attempt):
                    each.ended_by = TurnFailed(questions[each].turn, result, attempt)
                else:
                    again[each] = questions[each]
                    delay = max(delay, self.retry_policy.delay(attempt, result.retry_after))
            questions = again
            if questions:
                # Out of the slot: a call that waits keeps none from being made.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.draining.wait(), delay)
        return answers

    async def _call(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Reply | ModelCallFailed | TurnHeldElsewhere | TurnPutOff]:
        """One call for each question, under a lease and within the deadline."""
        results: dict[Conversation, Reply | ModelCallFailed | TurnHeldElsewhere | TurnPutOff] = {}
        async with tutor.slots:
            if self.draining.is_set():
                return dict.fromkeys(questions, TurnPutOff("the runner is draining"))
            now = self.clock.now()
            until = now + timedelta(seconds=tutor.deadline) + self.lease_margin
            leases = [
                Lease(
                    question.run.experiment_id,
                    TurnKey(question.run.run_id, question.turn),
                    now,
                    until,
                )
                for question in questions.values()
            ]
            granted = await self.lease(leases)
            for (each, question), may_ask in zip(questions.items(), granted, strict=True):
                if may_ask:
                    results[each] = await _reply(tutor, question)
                else:
                    results[each] = TurnHeldElsewhere("another runner is asking for this turn")
        return results


async def _reply(tutor: Tutor, question: Question) -> Reply | ModelCallFailed:
    """What came of one call."""
    if tutor.client.answers_at_once:
        return await _ask(tutor, question)
    try:
        with bound_contextvars(**_about(question)):
            async with asyncio.timeout(tutor.deadline):
                return await _ask(tutor, question)
    except TimeoutError:
        message = f"no answer within {tutor.deadline:g} s"
        return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True)


def _about(question: Question) -> dict[str, str | int]:
    """What a log line about this call is found by."""
    run = question.run
    return {
        "run_id": run.run_id,
        "correlation_id": run.experiment_id,
        "turn": question.turn,
    }


async def _ask(tutor: Tutor, question: Question) -> Reply | ModelCallFailed:
    try:
        reply = await tutor.client.ask(question)
        for text in (reply.text, reply.stop_reason, reply.model_version):
            (text or "").encode()
    except ModelCallFailed as failure:
        return failure
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ModelCallFailed(FailureKind.UNKNOWN, "its client gave the call up", retryable=True)
    except UnicodeEncodeError as error:
        message = f"the reply is no valid Unicode text: {error.reason}"
        return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)
    except Exception as error:
        log.exception("model client failed", model=question.run.model_id, **_about(question))
        message = f"{type(error).__name__}: {error}"
        return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)
    return reply
