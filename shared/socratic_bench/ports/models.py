"""The model port: ask a tutor model one turn and get its reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from socratic_bench.domain.experiment.manifest import Parameters
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run
from socratic_bench.scoring.exchange import EarlierTurn, Status


class Question(NamedTuple):
    """One turn of a run, in the form of a model's input."""

    run: Run
    turn: int
    """1 for the first turn."""

    system_prompt: str
    student_message: str
    earlier_turns: tuple[EarlierTurn, ...]
    parameters: Parameters
    seed: int
    """The seed, for models that take one: the same question has the same seed."""

    @property
    def texts(self) -> list[str]:
        """All texts that the call sends."""
        turns = [text for turn in self.earlier_turns for text in (turn.student, turn.tutor)]
        return [self.system_prompt, self.student_message, *turns]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer, with its provider's report on it."""

    text: str
    """As the provider sent it; the runner takes thoughts and control tokens out of it."""

    status: Status
    """OK, TRUNCATED or REFUSED, or ERROR with its kind; the runner turns an empty text into
    EMPTY."""

    usage: Usage
    latency_ms: int | None
    stop_reason: str | None = None
    model_version: str | None = None
    """The model version that the provider reports, if any."""

    routed_to: str | None = None
    """The provider that a router chose for this reply, if it names one."""

    first_token_ms: int | None = None
    """The time to the first piece of text or reasoning; None where the reply came whole."""

    error_kind: str | None = None
    """The kind of ERROR: UNFINISHED."""

    reply_id: str | None = field(default=None, compare=False)
    """The provider's id of the reply; the same reply has another one at each call."""

    notes: tuple[str, ...] = ()
    """What the client saw of the reply, by the names of `scoring.answer_notes`."""


class ModelClient(Protocol):
    """Calls one model. Cancelling `ask` ends the call and frees its resources.

    A client of a network service enforces its model's `connect_timeout_seconds` and, for a streamed
    reply, its `first_byte_timeout_seconds`; the caller enforces the deadline of the whole call. One
    `ask` makes one call; the caller retries.
    """

    @property
    def concurrency(self) -> int | None:
        """The most calls that this client can usefully have in flight; None: any number."""
        ...

    @property
    def answers_at_once(self) -> bool:
        """Whether `ask` returns in microseconds, without waiting.

        The runner takes the turns of such a client's runs together, without a task and a deadline
        for each. Its `concurrency` must be None.
        """
        ...

    async def ask(self, question: Question) -> Reply:
        """Return the model's reply to one turn.

        Raises ModelCallFailed, with a FailureKind, whether another try may help, and the wait that
        the provider asked for; ModelUnusable where every other call would fail in the same way. No
        message holds a key.
        """
        ...

    async def close(self) -> None:
        """Free the client's resources. A second call does nothing."""
        ...
