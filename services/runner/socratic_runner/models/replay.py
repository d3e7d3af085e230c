"""Replays recorded responses: `replay/FILE`, a file with one response per line, as JSON.

A line is `{"scenario_id": …, "text": …}`, or `"response"` for `"text"`. It may add `repeat`,
`turn`, `status`, `output_tokens`, `reasoning_tokens`, `input_tokens`, `latency_ms`,
`stop_reason`, `model_version`, `model_id`. Of the lines without a `repeat`, the n-th for a
scenario and turn is repeat n. The replies stay in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable
from functools import partial
from io import BufferedReader
from itertools import count
from typing import Annotated, Any, Final, TypeAlias

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, InvalidInput, Mistake, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.options import read_options
from socratic_bench.providers.recordings import LARGEST_RECORDING, ReplayOptions, open_recording
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_runner.models.access import Access

log = structlog.get_logger(__name__)

MISTAKES_KEPT: Final = 100
"""The most wrong lines of one recording that are reported."""

TurnPosition: TypeAlias = tuple[str, int, int]
"""Scenario, repeat, turn."""

Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class RecordedLine(BaseModel):
    """One line of a recording. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    scenario_id: str
    text: str
    repeat: Annotated[int, Field(ge=1)] | None = None
    turn: Annotated[int, Field(ge=1)] = 1
    status: Status = Status.OK
    output_tokens: Count | None = None
    reasoning_tokens: Count = 0
    input_tokens: Count | None = None
    latency_ms: Count | None = None
    stop_reason: str | None = None
    model_version: str | None = None
    model_id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _response_is_text(cls, line: Any) -> Any:
        if isinstance(line, dict) and "text" not in line and "response" in line:
            return {**line, "text": line["response"]}
        return line

    def reply(self) -> Reply:
        # The runner marks an empty response when it records it, as with every client.
        return Reply(
            text=self.text,
            status=Status.OK if self.status is Status.EMPTY else self.status,
            usage=Usage(
                visible_output_tokens=self.output_tokens,
                reasoning_tokens=self.reasoning_tokens,
                input_tokens=self.input_tokens,
            ),
            latency_ms=self.latency_ms,
            stop_reason=self.stop_reason,
            model_version=self.model_version,
        )


class ReplayFile:
    """The replies of one file, and its mistakes. Reads the file, blocking."""

    def __init__(self, name: str, file: BufferedReader, model_id: str | None) -> None:
        self.replies: dict[TurnPosition, Reply] = {}
        self.mistakes: list[Mistake] = []
        """The first of them."""

        self._name = name
        self._model_id = model_id
        self._lines_without_repeat: Counter[tuple[str, int]] = Counter()
        digest = hashlib.sha256()
        # The size limit holds for a file that grows meanwhile, too.
        left = LARGEST_RECORDING
        for number in count(1):
            line = file.readline(left)
            if not line:
                break
            left -= len(line)
            digest.update(line)
            self._take(number, line.removeprefix(BOM_UTF8) if number == 1 else line)
        self.sha256 = digest.hexdigest()

    def _take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            recorded = RecordedLine.model_validate_json(line)
        except ValidationError as error:
            self._skip(number, _explain(error))
            return
        ours = self._model_id is None or recorded.model_id == self._model_id
        if ours and not self._add(recorded):
            self._skip(number, "this scenario, repeat and turn was recorded before")

    def _add(self, line: RecordedLine) -> bool:
        repeat = line.repeat
        if repeat is None:
            self._lines_without_repeat[line.scenario_id, line.turn] += 1
            repeat = self._lines_without_repeat[line.scenario_id, line.turn]
        position = (line.scenario_id, repeat, line.turn)
        if position in self.replies:
            return False
        self.replies[position] = line.reply()
        return True

    def _skip(self, number: int, problem: str) -> None:
        if len(self.mistakes) == MISTAKES_KEPT:
            return
        self.mistakes.append(Mistake(f"{self._name}:{number}", problem))
        log.warning("recorded line skipped", file=self._name, line=number, problem=problem)


class ReplayClient:
    """Answers from a recording, which it reads at its first call."""

    concurrency: int | None = None

    def __init__(
        self, opened: Callable[[], BufferedReader], name: str, options: ReplayOptions
    ) -> None:
        """`opened` opens the file, and raises InvalidInput."""
        self._opened = opened
        self._name = name
        self._options = options
        self._reading: asyncio.Task[ReplayFile] | None = None
        self._recording: ReplayFile | None = None

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The skipped lines, and why; empty before the first call."""
        return tuple(self._recording.mistakes) if self._recording else ()

    @property
    def answers_at_once(self) -> bool:
        """True once the recording is read."""
        return self._recording is not None

    async def ask(self, question: Question) -> Reply:
        """Return the recorded reply with its recorded latency, at once."""
        recording = await self._read()
        run = question.run
        reply = recording.replies.get((run.scenario_id, run.repeat, question.turn))
        if reply is None:
            raise ModelCallFailed(
                FailureKind.NOT_FOUND,
                f"{self._name} has no response for scenario {run.scenario_id}, "
                f"repeat {run.repeat}, turn {question.turn}",
                retryable=False,
            )
        if reply.status is Status.ERROR:
            message = reply.text or "the recorded call had failed"
            raise ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)
        return reply

    async def close(self) -> None:
        """Forget the replies."""
        if self._reading is not None:
            await asyncio.wait((self._reading,))
        if self._recording is not None:
            self._recording.replies.clear()

    def _recorded(self) -> ReplayFile:
        with self._opened() as file:
            return ReplayFile(self._name, file, self._options.model_id)

    async def _read(self) -> ReplayFile:
        if self._recording is None:
            # All callers share one reading; it survives the cancellation of a caller.
            if self._reading is None:
                self._reading = asyncio.create_task(asyncio.to_thread(self._recorded))
            try:
                self._recording = await asyncio.shield(self._reading)
            except InvalidInput as error:
                raise ModelCallFailed(FailureKind.NOT_FOUND, str(error), retryable=False) from error
            except OSError as error:
                message = f"{self._name} cannot be read: {error.strerror}"
                raise ModelCallFailed(FailureKind.NOT_FOUND, message, retryable=False) from error
        if self._options.sha256 not in (None, self._recording.sha256):
            message = f"{self._name} has changed since the benchmark was planned; plan it again"
            raise ModelCallFailed(FailureKind.BAD_REQUEST, message, retryable=False)
        return self._recording


def check_access(model: TutorModel, access: Access) -> None:
    """Do nothing: a recording has no requirements."""


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for a recording."""
    options = read_options(model, ReplayOptions)
    name = model.id.partition("/")[2]
    return ReplayClient(partial(open_recording, model, access.base_folder), name, options)


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
