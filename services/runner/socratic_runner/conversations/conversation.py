"""A run under way: its next question, its replies, and the reason why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.identifiers import sampling_seed
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring import answer_notes
from socratic_bench.scoring.exchange import Status, effective_status
from socratic_bench.scoring.length import may_count
from socratic_bench.scoring.visible_text import VisibleText, read
from socratic_runner.model_pool import CalledModel

_CONTEXTS: Final = frozenset(2**power for power in range(11, 18))
"""Sizes of a context that servers choose by themselves, in tokens."""


class SeenReply(NamedTuple):
    """A reply as it is stored and scored."""

    text: str
    reasoning: str | None
    usage: Usage
    notes: tuple[str, ...]


def seen(
    reply: Reply, earlier: Sequence[Response], max_tokens: int, model: CalledModel | None = None
) -> SeenReply:
    """Return what a student sees of a model's reply after the `earlier` turns of its run.

    Without `model`, nobody here pays for the reply.
    """
    visible = read(reply.text)
    notes = {
        *reply.notes,
        *_notes_of_text(visible),
        *_notes_of_counts(reply, earlier, max_tokens),
    }
    if model is not None and model.cost_is_upper_bound(reply.usage):
        notes.add(answer_notes.UPPER_COST)
    return SeenReply(
        visible.text, visible.reasoning or None, _usage(reply, visible), tuple(sorted(notes))
    )


def _notes_of_text(visible: VisibleText) -> list[str]:
    found = {
        answer_notes.THOUGHTS: bool(visible.reasoning),
        answer_notes.END_TOKENS: visible.end_tokens,
        answer_notes.STUDENT_TURN: visible.student_turn,
        answer_notes.CITATIONS: visible.citations,
    }
    return [note for note, holds in found.items() if holds]


def _notes_of_counts(reply: Reply, earlier: Sequence[Response], max_tokens: int) -> list[str]:
    read_now, written = reply.usage.input_tokens, reply.usage.output_tokens
    notes = []
    if reply.status is Status.OK and written is not None and written >= max_tokens:
        notes.append(answer_notes.AT_LIMIT)
    if read_now is None or not earlier:
        return notes
    read_before = earlier[-1].usage.input_tokens
    full = written is not None and read_now + written in _CONTEXTS
    if full or (read_before is not None and read_now <= read_before):
        notes.append(answer_notes.CONTEXT_CUT)
    return notes


def _usage(reply: Reply, visible: VisibleText) -> Usage:
    """Return the usage without a count that cannot be that of the visible text."""
    usage = reply.usage
    counted = usage.visible_output_tokens
    if counted is None:
        return usage
    if visible.reasoning and usage.reasoning_tokens == 0:
        # The provider counted the thoughts in the text with the answer.
        return usage.model_copy(
            update={"visible_output_tokens": None, "unsplit_output_tokens": counted}
        )
    if not may_count(counted, visible.text):
        return usage.model_copy(update={"visible_output_tokens": None})
    return usage


@dataclass(frozen=True, slots=True)
class TurnHeldElsewhere:
    """Another runner holds the lease of a turn, or a newer one has stored a response that this
    version cannot read; that runner will publish the rest of the run.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class TurnPutOff:
    """The runner begins no call now: it drains, has too little time, or the model is paused."""

    reason: str
    seconds: float = 0.0
    """Until it is of use to look again."""


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """The rest of the experiment's budget is too small for the call."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The experiment is paused, cancelled or deleted."""


@dataclass(frozen=True, slots=True)
class NoRoomYet:
    """Calls in flight have reserved the rest of the budget, and may return some of it."""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn got no response after all its tries."""

    turn: int
    failure: ModelCallFailed
    attempts: int


Ending = TurnFailed | TurnHeldElsewhere | TurnPutOff | OutOfBudget | Stopped


@dataclass(slots=True, eq=False)
class Conversation:
    """One run under way."""

    run: Run
    experiment: Experiment
    responses: list[Response] = field(default_factory=list)
    """Its stored responses, in the order of their turns."""

    called_at: float | None = None
    """When this runner made its first call, by the loop's clock."""

    attempts: int = 0
    """The number of calls for the next turn."""

    failure: ModelCallFailed | None = None
    """The failure of a call for the next turn, until its consequence is decided."""

    last_failure: ModelCallFailed | None = None
    """The failure of the last call for the next turn."""

    ended_by: Ending | None = None
    """The reason why the run stopped, if it did."""

    said: str | None = None
    """The student's next message, from the model that plays the student; None: not known yet, or
    the scenario's own."""

    @property
    def manifest(self) -> Manifest:
        return self.experiment.manifest

    @property
    def is_graded(self) -> bool:
        """Whether its responses need gradings before they are published."""
        return self.manifest.use_llm_exploratory is not None

    @property
    def open(self) -> bool:
        """True while it has another turn to take."""
        return not self.is_answered and self.ended_by is None

    @property
    def is_answered(self) -> bool:
        """Whether the response of its last turn is stored."""
        return bool(self.responses) and self.responses[-1].last_turn

    @property
    def turn(self) -> int:
        """The next turn, from 1."""
        return len(self.responses) + 1

    @property
    def student_message(self) -> str | None:
        """The student's next message; None: its model has yet to say it."""
        fixed = self.manifest.fixed_messages(self.manifest.scenarios_by_id[self.run.scenario_id])
        return fixed[self.turn - 1] if self.turn <= len(fixed) else self.said

    def time_left(self, model: CalledModel, now: float) -> float | None:
        """Seconds of its deadline that are left at `now`; None before its first call."""
        if self.called_at is None:
            return None
        return self.called_at + model.entry.limits.run_timeout_seconds - now

    def call_begins(self, now: float) -> None:
        """Count a call."""
        self.attempts += 1
        if self.called_at is None:
            self.called_at = now

    def take_failure(self) -> ModelCallFailed | None:
        """The failure whose consequence is to be decided."""
        failure, self.failure = self.failure, None
        return failure

    def answered(self, stored: Response) -> None:
        """Go on to the next turn."""
        self.responses.append(stored)
        self.attempts = 0
        self.said = None
        self.last_failure = None

    def question(self) -> Question:
        """The next question to the model. Raises ValueError while the student's message is due."""
        run, manifest, message = self.run, self.experiment.manifest, self.student_message
        if message is None:
            raise ValueError(f"turn {self.turn} of run {run.run_id} has no student's message yet")
        key = self.experiment.conversation_keys[run.model_id, run.scenario_id]
        model = manifest.models_by_id[run.model_id]
        return Question(
            run=run,
            turn=self.turn,
            system_prompt=manifest.system_prompt_of(model),
            student_message=message,
            earlier_turns=tuple(response.as_earlier_turn for response in self.responses),
            parameters=manifest.parameters_of(model),
            seed=sampling_seed(key, run.repeat, self.turn),
        )

    def response(
        self, question: Question, reply: Reply, model: CalledModel, now: datetime
    ) -> Response:
        """The response to record for a reply."""
        reply_seen = seen(reply, self.responses, question.parameters.max_tokens, model)
        usage = reply_seen.usage
        scenario = self.manifest.scenarios_by_id[self.run.scenario_id]
        return Response(
            run=self.run,
            turn=question.turn,
            last_turn=question.turn == scenario.turns,
            profile=self.manifest.profile,
            student_message=question.student_message,
            earlier_turns=question.earlier_turns,
            answer_key=scenario.key,
            text=reply_seen.text,
            status=effective_status(reply.status, reply_seen.text),
            error_kind=reply.error_kind,
            usage=usage,
            latency_ms=reply.latency_ms,
            first_token_ms=reply.first_token_ms,
            cost_nanodollars=model.cost_nanodollars(usage),
            stop_reason=reply.stop_reason,
            model_version=reply.model_version,
            routed_to=reply.routed_to,
            reply_id=reply.reply_id,
            reasoning=reply_seen.reasoning,
            notes=reply_seen.notes,
            attempts=self.attempts,
            recorded_at=now,
        )
