"""The one turn that grades a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment, Grader
from socratic_bench.domain.grading import INSTRUCTION, grading_run_id, message_of
from socratic_bench.domain.identifiers import sampling_seed
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring.statuses import effective_status
from socratic_runner.conversations.conversation import Conversation
from socratic_runner.model_pool import CalledModel

DIMENSION: Final = "grading"
"""Instead of a scenario's dimension."""


@dataclass(slots=True, eq=False)
class GradingConversation(Conversation):
    """A run whose question is to grade one text."""

    grader: Grader = field(kw_only=True)
    text: str = field(kw_only=True)

    @classmethod
    def of(cls, experiment: Experiment, grader: Grader, text: str) -> GradingConversation:
        """Return the conversation that grades a text for an experiment."""
        run = Run(
            run_id=grading_run_id(experiment.experiment_id, text),
            experiment_id=experiment.experiment_id,
            model_id=grader.model.id,
            scenario_id=grader.rubric,
            dimension=DIMENSION,
            repeat=1,
        )
        return cls(run, experiment, grader=grader, text=text)

    def question(self) -> Question:
        """The rubric and the text."""
        return Question(
            run=self.run,
            turn=1,
            system_prompt=INSTRUCTION,
            student_message=message_of(self.text),
            earlier_turns=(),
            parameters=self.grader.parameters,
            seed=sampling_seed(self.grader.key, 1, 1),
        )

    def response(
        self, question: Question, reply: Reply, model: CalledModel, now: datetime
    ) -> Response:
        """The grading to record for a reply."""
        return Response(
            run=self.run,
            turn=1,
            last_turn=True,
            profile=self.grader.rubric,
            student_message=question.student_message,
            text=reply.text,
            status=effective_status(reply.status, reply.text),
            error_kind=reply.error_kind,
            usage=reply.usage,
            latency_ms=reply.latency_ms,
            first_token_ms=reply.first_token_ms,
            cost_nanodollars=model.cost_nanodollars(reply.usage),
            stop_reason=reply.stop_reason,
            model_version=reply.model_version,
            attempts=self.attempts,
            recorded_at=now,
        )
