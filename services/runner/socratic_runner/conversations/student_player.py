"""Plays the student of runs: before each turn, its model says the message that the tutor answers.

A message is stored, as the response of a run of its own, before the tutor is asked with it. Its
turn has a lease of its own: a redelivered run finds the message, and no other one is made or paid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from structlog.contextvars import bound_contextvars

from socratic_bench.domain.experiment.manifest import Student
from socratic_bench.domain.identifiers import sampling_seed
from socratic_bench.domain.response import Response
from socratic_bench.domain.student import INSTRUCTION, message_of, student_run_id
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_runner.conversations.asking import log_fields
from socratic_runner.conversations.conversation import Conversation, Ending, TurnFailed, seen
from socratic_runner.conversations.conversation_runner import ConversationRunner, nothing
from socratic_runner.model_pool import CalledModel


@dataclass(slots=True, eq=False)
class StudentConversation(Conversation):
    """A run whose responses are the student's messages; it takes one turn of the tutor's run."""

    student: Student = field(kw_only=True)
    tutored: Conversation = field(kw_only=True)

    @classmethod
    def of(cls, tutored: Conversation, student: Student) -> StudentConversation:
        """Return the conversation that makes the student's next message in a run."""
        run_id, model_id = student_run_id(tutored.run.run_id), student.model.id
        run = tutored.run.model_copy(update={"run_id": run_id, "model_id": model_id})
        # The deadline of a run holds for the calls of its student, too.
        called_at = tutored.called_at
        return cls(run, tutored.experiment, called_at=called_at, student=student, tutored=tutored)

    def question(self) -> Question:
        """The prompt and the conversation so far."""
        tutored, run = self.tutored, self.run
        scenario = self.manifest.scenarios_by_id[run.scenario_id]
        earlier_turns = [each.as_earlier_turn for each in tutored.responses]
        key = self.experiment.said_in_scenarios[scenario.id]
        if self.last_failure is not None and self.last_failure.kind is FailureKind.MALFORMED_REPLY:
            # A model that takes a seed would say the same again.
            key = f"{key}/{self.attempts}"
        return Question(
            run=run,
            turn=tutored.turn,
            system_prompt=INSTRUCTION,
            student_message=message_of(scenario, tutored.turn, earlier_turns),
            earlier_turns=(),
            parameters=self.student.parameters,
            seed=sampling_seed(key, run.repeat, tutored.turn),
        )

    def response(
        self, question: Question, reply: Reply, model: CalledModel, now: datetime
    ) -> Response:
        """The student's message to record for a reply."""
        reply_seen = seen(reply, (), question.parameters.max_tokens, model)
        return Response(
            run=self.run,
            turn=question.turn,
            last_turn=True,
            profile=self.student.prompt,
            student_message=question.student_message,
            text=reply_seen.text.strip(),
            status=reply.status,
            usage=reply_seen.usage,
            latency_ms=reply.latency_ms,
            first_token_ms=reply.first_token_ms,
            cost_nanodollars=model.cost_nanodollars(reply_seen.usage),
            stop_reason=reply.stop_reason,
            model_version=reply.model_version,
            routed_to=reply.routed_to,
            reply_id=reply.reply_id,
            reasoning=reply_seen.reasoning,
            notes=reply_seen.notes,
            attempts=self.attempts,
            recorded_at=now,
        )


@dataclass(frozen=True, slots=True)
class StudentPlayer:
    """Carries out runs in which a model plays the student."""

    runner: ConversationRunner
    student: CalledModel

    async def run(
        self, model: CalledModel, conversation: Conversation, on_turn: Callable[[], None]
    ) -> None:
        """Take turn after turn, as `ConversationRunner.run`, each with the student's message."""
        while conversation.open:
            if conversation.student_message is None:
                await self._speak(conversation)
            if conversation.open:
                await self.runner.take_turn(model, conversation, on_turn)

    async def _speak(self, conversation: Conversation) -> None:
        """Get the student's next message, the stored one if there is one, or end the run."""
        plays = conversation.manifest.student
        if plays is None:
            return
        speaking = StudentConversation.of(conversation, plays)
        # The log fields of the tutor's call come with it.
        with bound_contextvars(**log_fields(speaking.question())):
            await self.runner.take_turn(self.student, speaking, nothing)
        if conversation.called_at is None:
            conversation.called_at = speaking.called_at
        if speaking.responses:
            conversation.said = speaking.responses[0].text
        conversation.ended_by = _ending_of(speaking)


def _ending_of(speaking: StudentConversation) -> Ending | None:
    """Return what ends the tutor's run; its failure says that the student's model failed."""
    ended = speaking.ended_by
    if not isinstance(ended, TurnFailed):
        return ended
    failure = ended.failure
    message = f"{speaking.run.model_id} plays the student, and failed: {failure}"
    told = ModelCallFailed(failure.kind, message, retryable=False)
    return TurnFailed(ended.turn, told, ended.attempts)
