"""The model port: putting one turn to a tutor model and getting its reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from socratic_bench.domain.experiment.manifest import Parameters
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.statuses import Status


class Question(NamedTuple):
    """One turn of a run, as it is put to a model."""

    run: Run
    turn: int
    """1 for the first turn."""

    system_prompt: str
    student_message: str
    earlier_turns: tuple[EarlierTurn, ...]
    parameters: Parameters
    seed: int
    """For models that take a seed: the same question has the same seed."""

    @property
    def texts(self) -> list[str]:
        """Everything that is sent."""
        turns = [text for turn in self.earlier_turns for text in (turn.student, turn.tutor)]
        return [self.system_prompt, self.student_message, *turns]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, with everything its provider said about it."""

    text: str
    status: Status
    """OK, TRUNCATED or REFUSED, or ERROR with its kind; an empty text is found by whoever records
    the reply."""

    usage: Usage
    latency_ms: int | None
    stop_reason: str | None = None
    model_version: str | None = None
    """The version the provider says it served, where it says one."""

    first_token_ms: int | None = None
    """How long the first piece of text or reasoning took; None where the reply came whole."""

    error_kind: str | None = None
    """Which kind of ERROR this is: UNFINISHED."""


class ModelClient(Protocol):
    """Speaks to one model. Cancelling `ask` ends the call and frees what it held.

    One that uses a network keeps its model's `connect_timeout_seconds` and, where the reply is
    streamed, its `first_byte_timeout_seconds`; whoever asks keeps the deadline of the whole call.
    It makes one call for one `ask`: trying again is the affair of whoever asks.
    """

    @property
    def concurrency(self) -> int | None:
        """Calls this client can usefully have in flight; None: as many as one likes."""
        ...

    @property
    def answers_at_once(self) -> bool:
        """Whether `ask` returns without waiting for anything, in microseconds.

        Such a client needs no deadline, and its runs no task each. It must have no ceiling on its
        concurrency.
        """
        ...

    async def ask(self, question: Question) -> Reply:
        """The model's reply to one turn.

        Raises ModelCallFailed, with a FailureKind, whether another try may help, and how long the
        provider asked to wait; ModelUnusable where every other call would fail in the same way. No
        message holds a key.
        """
        ...

    async def close(self) -> None:
        """Free what the client holds. Calling it twice does nothing."""
        ...
