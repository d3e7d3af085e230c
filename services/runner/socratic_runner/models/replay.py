"""Replaying recorded responses: `replay/FILE`, a file with one response per line, as JSON.

A line is `{"scenario_id": …, "text": …}`, or `"response"` for `"text"`, and may say more: `repeat`,
`turn`, `status`, `output_tokens`, `reasoning_tokens`, `input_tokens`, `latency_ms`, `stop_reason`,
`model_version`, `model_id`. Of the lines without a `repeat`, the n-th for a scenario and turn is
repeat n. The replies are kept in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
from codecs import BOM_UTF8
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.errors import InvalidInput, Mistake, ModelCallFailed
from socratic_bench.ports.models import FailureKind, ModelClient, Question, Reply
from socratic_bench.scoring.statuses import Status
from socratic_runner.models.options import Options, read_options, refuse_base_url

_log = structlog.get_logger(__name__)

Place: TypeAlias = tuple[str, int, int]
"""Scenario, repeat, turn."""

Count = Annotated[int, Field(ge=0)]


class ReplayOptions(Options):
    """The options of a recording."""

    model_id: str | None = None
    """Only lines with this `model_id`; None: all lines."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The `fingerprint` the file must have; None: any. Planning puts it here."""


class RecordedLine(BaseModel):
    """One line of a recording. What is not known here is left out of account."""

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
        # An empty response is found by whoever records it, here as everywhere.
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


class Recording:
    """The replies of one file, and what was wrong with it. Reads it, blocking."""

    def __init__(self, path: Path, model_id: str | None) -> None:
        self.replies: dict[Place, Reply] = {}
        self.mistakes: list[Mistake] = []
        self._path = path
        self._model_id = model_id
        self._lines_without_repeat: Counter[tuple[str, int]] = Counter()
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
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
        place = (line.scenario_id, repeat, line.turn)
        if place in self.replies:
            return False
        self.replies[place] = line.reply()
        return True

    def _skip(self, number: int, problem: str) -> None:
        self.mistakes.append(Mistake(f"{self._path}:{number}", problem))
        _log.warning("recorded line skipped", file=str(self._path), line=number, problem=problem)


class ReplayClient:
    """Answers from a recording, which is read when it is first asked."""

    concurrency: int | None = None

    def __init__(self, path: Path, options: ReplayOptions) -> None:
        self._path = path
        self._options = options
        self._reading: asyncio.Task[Recording] | None = None
        self._recording: Recording | None = None

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The lines that were skipped, and why; none before the first question."""
        return tuple(self._recording.mistakes) if self._recording else ()

    @property
    def answers_at_once(self) -> bool:
        """Once the recording is read."""
        return self._recording is not None

    async def ask(self, question: Question) -> Reply:
        """The recorded reply, with its recorded latency, at once."""
        recording = await self._read()
        run = question.run
        reply = recording.replies.get((run.scenario_id, run.repeat, question.turn))
        if reply is None:
            raise ModelCallFailed(
                FailureKind.NOT_FOUND,
                f"{self._path} has no response for scenario {run.scenario_id}, "
                f"repeat {run.repeat}, turn {question.turn}",
                retryable=False,
            )
        if reply.status is Status.ERROR:
            message = reply.text or "the recorded call had failed"
            raise ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)
        return reply

    async def close(self) -> None:
        """Forget the replies, once they are read."""
        if self._reading is not None:
            await asyncio.wait((self._reading,))
        if self._recording is not None:
            self._recording.replies.clear()

    async def _read(self) -> Recording:
        if self._recording is None:
            # One reading for all who ask: it goes on when one of them is cancelled.
            if self._reading is None:
                read = asyncio.to_thread(Recording, self._path, self._options.model_id)
                self._reading = asyncio.create_task(read)
            try:
                self._recording = await asyncio.shield(self._reading)
            except OSError as error:
                message = f"{self._path} cannot be read: {error.strerror}"
                raise ModelCallFailed(FailureKind.NOT_FOUND, message, retryable=False) from error
        if self._options.sha256 not in (None, self._recording.sha256):
            message = f"{self._path} has changed since the benchmark was planned; plan it anew"
            raise ModelCallFailed(FailureKind.BAD_REQUEST, message, retryable=False)
        return self._recording


def check_model(model: TutorModel, base_folder: Path | None) -> None:
    """Raise InvalidInput for a wrong option or a recording that is not there."""
    refuse_base_url(model)
    read_options(model, ReplayOptions)
    recording_path(model, base_folder)


def check_access(model: TutorModel) -> None:
    """Nothing is needed."""


def open_client(model: TutorModel, base_folder: Path | None) -> ModelClient:
    """A client for a recording."""
    check_model(model, base_folder)
    options = read_options(model, ReplayOptions)
    return ReplayClient(recording_path(model, base_folder), options)


def fingerprint(model: TutorModel, base_folder: Path | None) -> str:
    """The SHA-256 of the recording, in hexadecimal: another file under the same name is seen.

    Reads the whole file, blocking. Raises InvalidInput if it is not there.
    """
    with recording_path(model, base_folder).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recording_path(model: TutorModel, base_folder: Path | None) -> Path:
    """The file `model` replays, taken from `base_folder`.

    Raises InvalidInput without a base folder, and if the file is not there.
    """
    if base_folder is None:
        raise InvalidInput(
            f"model {model.id}: a recording is a file beside a configuration, and there is none "
            "here; use `socratic-bench run CONFIG`"
        )
    path = base_folder / model.id.partition("/")[2]
    if not path.is_file():
        raise InvalidInput(f"model {model.id}: there is no file {path}")
    return path


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
