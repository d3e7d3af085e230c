"""What a file of another tool tells of one conversation, in the same shape for every format."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_bench.scoring.score import MOST_TOKENS

MOST_TURNS_KEPT: Final = 200
"""The most turns of one conversation."""


@dataclass(slots=True)
class LogFacts:
    """What a file tells of itself. Reading the file completes it."""

    tool: str
    """The tool that wrote the file, as people call it."""

    slug: str
    """The same as a part of a model's id."""

    version: str | None = None
    created: datetime | None = None
    planned: int | None = None
    """The answers that the log's own plan has; None: unknown."""

    remarks: list[str] = field(default_factory=list)
    """What a reader of the figures has to know: the log is unfinished, for example."""


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """One answer of a tutor."""

    student: str
    """What the student said since the answer before; empty if unknown."""

    text: str
    """As the tool kept it: thoughts may stand in it."""

    status: Status = Status.OK
    output_tokens: int | None = None
    """Visible tokens; None: unknown."""

    reasoning_tokens: int = 0
    input_tokens: int | None = None
    latency_ms: int | None = None
    stop_reason: str | None = None
    model_version: str | None = None
    reply_id: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """One conversation of a tutor with one sample, once."""

    place: str
    model: str
    sample: str
    """The sample's name in its set; empty: the student's words name it."""

    turns: Sequence[LoggedTurn]
    before: tuple[EarlierTurn, ...] = ()
    """The turns before, whose answers are not this tutor's, or stand elsewhere."""

    repeat: int | None = None
    """From 1; None: the n-th run of the model and the sample is repeat n."""

    error: str | None = None
    """Why the run failed after its turns; None: it did not."""

    asked: str = ""
    """What the student said last, without an answer."""

    system_prompt: str | None = None
    """None: unknown."""

    dimension: str = ""
    at: datetime | None = None
    answer_key: tuple[str, ...] = ()

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each answer as a record that `score` reads; a failed run's are errors."""
        earlier = [*self.before]
        repeat = {} if self.repeat is None else {"epoch": self.repeat}
        several = len(self.turns) > 1
        for number, turn in enumerate(self.turns, start=1):
            status = turn.status if self.error is None else Status.ERROR
            yield {
                "id": f"{self.sample}#{number}" if several else self.sample,
                **repeat,
                "text": turn.text,
                "status": status,
                "output_tokens": turn.output_tokens,
                "student_message": turn.student,
                "earlier_turns": tuple(earlier),
                "answer_key": self.answer_key,
                **({"dimension": self.dimension} if self.dimension else {}),
            }
            earlier.append(EarlierTurn(turn.student, turn.text, turn.output_tokens, turn.status))
        if not self.turns:
            yield {"id": self.sample, **repeat, "text": "", "status": Status.ERROR}


class Unread(NamedTuple):
    """A part of a file that cannot be read, while the rest can."""

    place: str
    problem: str


LogRows: TypeAlias = Iterator[LoggedRun | Unread]
LogReader: TypeAlias = Callable[[Path, LogFacts], LogRows]
"""Yields the conversations of a file. May be called again for the same file."""

_SURROGATE_OR_NUL: Final = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Return a text that every store takes: NUL and halves of characters become U+FFFD."""
    return _SURROGATE_OR_NUL.sub("\ufffd", text)


def whole_number(value: object, most: int = MOST_TOKENS) -> int | None:
    """Return a count; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 0 <= value <= most else None


def text_or_none(value: object, most: int = 200) -> str | None:
    """Return the beginning of a text on one line; None for another value, or an empty one."""
    if not isinstance(value, str):
        return None
    return " ".join(clean(value[: 4 * most]).split())[:most] or None


def instant(value: object) -> datetime | None:
    """Return a time, from ISO 8601 or from seconds since 1970; None for what is none."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value if value < 1e11 else value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def member(value: object, *keys: str) -> Any:
    """Return what stands at a path of keys; None where nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
