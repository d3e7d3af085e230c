"""The provider of all models, and its book of calls: who was paid for what, and when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring.exchange import Status
from tests.simulation.chaos.benchmark import Pace
from tests.simulation.chaos.chance import now

TEXTS: Final = (
    "What might you have overlooked?",
    "The answer is simple: you should measure it first.",
    "Perhaps. What would change your mind, and how could you find out?",
    "You must always do this. Never do that.",
    "Let us see. Which number stands for the whole here?",
    "",
)
REFUSED_ONE_IN: Final = 12
"""Questions of which the provider's filter rejects one, each time it is asked."""

CALL_SECONDS: Final = Limits().timeout_seconds - 1.0

Turn = tuple[str, int]


@dataclass(slots=True, eq=False)
class Call:
    """A call that the provider works on, and bills."""

    turn: Turn
    process: str
    model: str
    begun_at: float
    excuse: str = ""
    """Why the same turn may be paid once more, such as a kill while this call was in flight."""

    ended_at: float | None = None


@dataclass(slots=True)
class Trouble:
    """A way in which the provider fails while a fault is in force."""

    kind: FailureKind
    share: float = 1.0
    """The share of calls that fail."""

    retry_after: float | None = None
    message: str = "simulated"
    model: str | None = None
    """The model whose calls fail; None: all."""


@dataclass(slots=True, eq=False)
class Provider:
    """Answers questions: the same question always gets the same answer."""

    chance: random.Random
    pace: Pace
    troubles: list[Trouble] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    slowness: float = 1.0
    requests: list[tuple[float, str]] = field(default_factory=list)
    """When each call arrived, paid or not, with its model."""

    cut_off: dict[str, str] = field(default_factory=dict)
    """Why each call of a process may be paid twice that begins now, by the process."""

    note: Callable[[str, str], None] | None = None

    async def ask(self, process: str, question: Question) -> Reply:
        """Serve one call of a process."""
        run, turn = question.run, question.turn
        self.requests.append((now(), run.model_id))
        if self.note is not None:
            self.note(process, f"calls {run.run_id} turn {turn}")
        trouble = self._trouble(run.model_id)
        if trouble is not None and trouble.kind in _UNPAID:
            await asyncio.sleep(0.05 + self.chance.random())
            raise trouble_of(trouble)
        mark = crc32(f"{run.model_id} {question.seed} {question.student_message}".encode())
        if mark % REFUSED_ONE_IN == 0:
            await asyncio.sleep(0.05 + self.chance.random())
            raise ModelCallFailed(FailureKind.REFUSED, "not a question for us", retryable=False)
        excuse = self.cut_off.get(process, "")
        call = Call((run.run_id, turn), process, run.model_id, now(), excuse)
        self.calls.append(call)
        try:
            if trouble is not None:
                call.excuse = f"the provider: {trouble.kind}"
                await asyncio.sleep(self.chance.uniform(0.1, self.pace.seconds))
                if trouble.kind is FailureKind.TIMEOUT:
                    await asyncio.get_running_loop().create_future()
                raise trouble_of(trouble)
            seconds = self.slowness * self.chance.uniform(0.05, 1.0) * self.pace.seconds
            if seconds > CALL_SECONDS:
                call.excuse = "the provider: slower than the deadline of a call"
            await asyncio.sleep(seconds)
        finally:
            call.ended_at = now()
        return reply_of(mark)

    def excuse(self, calls: Iterable[Call], reason: str) -> None:
        """Note that the turns of these calls may be paid once more."""
        for call in calls:
            call.excuse = call.excuse or reason

    def _trouble(self, model: str) -> Trouble | None:
        for trouble in self.troubles:
            if trouble.model in (None, model) and self.chance.random() < trouble.share:
                return trouble
        return None


_UNPAID: Final = frozenset(
    {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.UNREACHABLE}
)


def trouble_of(trouble: Trouble) -> ModelCallFailed:
    return ModelCallFailed(
        trouble.kind, trouble.message, retryable=True, retry_after=trouble.retry_after
    )


def reply_of(mark: int) -> Reply:
    """Return the answer to the question of this mark."""
    text = TEXTS[mark // 7 % len(TEXTS)]
    return Reply(
        text=text,
        status=Status.OK,
        usage=Usage(visible_output_tokens=len(text) // 4, input_tokens=40 + mark % 50),
        latency_ms=100 + mark % 900,
        stop_reason="stop",
        model_version="simulated-1",
    )


class Client:
    """The client of one model in one process."""

    concurrency = None
    answers_at_once = False

    def __init__(self, provider: Provider, process: str, model: TutorModel) -> None:
        self._provider = provider
        self._process = process
        self._model = model

    async def ask(self, question: Question) -> Reply:
        return await self._provider.ask(self._process, question)

    async def close(self) -> None:
        """Do nothing: the client holds no resources."""
