"""Reads a reply: piece by piece, as server-sent events, or whole."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, GetPydanticSchema, ValidationError
from pydantic_core.core_schema import with_default_schema

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.answer_notes import REPEATED_STREAM
from socratic_bench.scoring.visible_text import joined
from socratic_runner.models.chat import count_in
from socratic_runner.models.http.failures import Failures
from socratic_runner.models.http.half_characters import joined_halves, with_marked_halves
from socratic_runner.models.http.problems import parse
from socratic_runner.models.stop_reasons import Ended, how_it_ended


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    """Its type; empty if the stream gives none."""

    data: bytes
    """Its lines of data, joined by line feeds. Not decoded: the stream may hold any bytes."""


class EventDecoder:
    """Makes events from bytes, however those are split. Lines end with LF, CR LF or CR."""

    def __init__(self) -> None:
        self._start: bytes | None = b""
        """The first bytes, while they may still become a byte order mark."""

        self._after_cr = False
        """True after a CR, which a following LF belongs to."""

        self._line = bytearray()
        """The unfinished line."""

        self._name = ""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that these bytes complete; an incomplete last event is dropped."""
        if self._start is not None:
            data = self._without_mark(self._start + data)
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
            if not data:
                return []
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._line += rest
            return []
        lines = bytes(self._line + whole).split(b"\n")
        self._line = bytearray(rest)
        return list(self._events(lines))

    def _without_mark(self, data: bytes) -> bytes:
        if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(BOM_UTF8)

    def _events(self, lines: Iterable[bytes]) -> Iterator[Event]:
        for line in lines:
            if not line:
                if self._data:
                    yield Event(self._name, b"\n".join(self._data))
                self._name, self._data = "", []
                continue
            field, _, value = line.partition(b":")  # a comment is a field without a name
            value = value.removeprefix(b" ")
            if field == b"data":
                self._data.append(value)
            elif field == b"event":
                self._name = value.decode(errors="replace")


LONGEST_START: Final = 200
"""The most bytes of an unreadable reply in a message."""


Count = Annotated[int | None, BeforeValidator(count_in)]
"""A number of tokens; an impossible one becomes None, and spoils no reply."""

Name = Annotated[
    str | None,
    GetPydanticSchema(
        lambda shape, of: with_default_schema(of(shape), default=None, on_error="default")
    ),
]
"""An optional text; another type becomes None, and spoils no reply."""

Aside = BeforeValidator(lambda value: value if isinstance(value, dict) else None)
"""A field of an object beside the text; a wrong one becomes None, and spoils no reply."""

Shape = TypeVar("Shape", bound=BaseModel)


LARGEST_REPLY: Final = 8_000_000
"""The most bytes of a reply; a longer one is refused."""


class ReplyReading(ABC):
    """Reads one reply. A subclass knows its provider's wire format."""

    largest = LARGEST_REPLY

    def __init__(self, failures: Failures, *, streamed: bool) -> None:
        self.streamed = streamed
        """True if the call asked for a stream."""

        self.complete = False
        """True once nothing needed is missing."""

        self.failures = failures
        self.headers: Mapping[str, str] = {}
        """The headers of the response, once it began."""

        self._texts: list[str] = []
        self._is_marked = False
        """Whether the texts hold marks for halves of characters."""

        self._reasoned = False
        """True once the reply showed reasoning."""

        self._stop_reason: str | None = None
        self._model: str | None = None
        self._routed_to: str | None = None
        self._reply_id: str | None = None
        self.notes: set[str] = set()
        """What the reading saw, by the names of `answer_notes`."""

        self._started = self._last = time.perf_counter()
        self._first_token: float | None = None

    @abstractmethod
    def take_event(self, event: Event) -> None:
        """Take the next event of a stream. Raises ModelCallFailed if it holds an error."""

    @abstractmethod
    def take_whole(self, body: bytes) -> None:
        """Take a reply that came in one piece. Raises ModelCallFailed if it holds an error."""

    @abstractmethod
    def _usage(self) -> Usage: ...

    @property
    def finished(self) -> bool:
        """True once the model reported a stop reason."""
        return self._stop_reason is not None

    @property
    def settled(self) -> bool:
        """True once the reply is usable, whatever else comes.

        After reasoning without text, a stop reason may be a mistake of the server.
        """
        return self.finished and (self.wrote or not self._reasoned)

    @property
    def wrote(self) -> bool:
        """True once the reply has text."""
        return bool(self._texts)

    def take_events(self, events: Iterable[Event]) -> None:
        """Take events of a stream until it is complete. Raises as `take_event`.

        An error after the reply is settled does not spoil it.
        """
        for event in events:
            if self.complete:
                return
            if not event.data.strip():
                continue  # a gateway's sign of life
            try:
                self.take_event(event)
            except ModelCallFailed:
                if not self.settled:
                    raise
                self.complete = True

    def _ended(self, reason: str) -> Ended:
        """Raise ModelCallFailed if the stop reason says that the provider gave up."""
        ended = how_it_ended(reason)
        if isinstance(ended, Ended):
            return ended
        message = f"did not finish its reply; its stop reason is {reason}"
        raise self.failures.failure(ended, message)

    def reply(self) -> Reply:
        """Return the reply. Raises ModelCallFailed if it ended without a stop reason."""
        if self._stop_reason is None:
            raise self.cut("the reply ended without a stop reason")
        reason = self.failures.name(self._stop_reason)
        ended = self._ended(reason)
        text = joined(self._texts)
        if len(text) < sum(map(len, self._texts)):
            self.notes.add(REPEATED_STREAM)
        if self._is_marked:
            text = joined_halves(text)
        return Reply(
            text=text,
            status=ended.status,
            usage=self._usage(),
            latency_ms=round((self._last - self._started) * 1000),
            stop_reason=reason,
            model_version=self.failures.name(self._model or "") or None,
            routed_to=self.failures.name(self._routed_to or "") or None,
            first_token_ms=(
                None
                if self._first_token is None
                else round((self._first_token - self._started) * 1000)
            ),
            error_kind=ended.error_kind,
            reply_id=self.failures.name(self._reply_id or "") or None,
            notes=tuple(sorted(self.notes)),
        )

    def cut(self, why: str) -> ModelCallFailed:
        """Make the failure of an incomplete reply."""
        return self.failures.failure(FailureKind.CUT_STREAM, f"cut its reply short: {why}")

    def _read(self, shape: type[Shape], data: bytes) -> Shape:
        """Parse data as `shape`. Raises ModelCallFailed with MALFORMED_REPLY for other data."""
        self._last = time.perf_counter()
        try:
            return shape.model_validate_json(data)
        except ValidationError as refused:
            error = refused
        if (marked := with_marked_halves(data)) is not None:
            self._is_marked = True
            with suppress(ValidationError):
                return shape.model_validate_json(marked)
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise self._reported_in(data) or self.unreadable(
            f"{'.'.join(str(step) for step in first['loc']) or 'the reply'}: {first['msg']}", data
        )

    def unreadable(self, why: str, data: bytes) -> ModelCallFailed:
        """Make the failure of an unreadable reply, with its beginning."""
        begins = self.failures.one_line(
            data[:LONGEST_START].decode(errors="replace"), LONGEST_START
        )
        told = f"; it begins: {begins}" if begins else ""
        message = f"sent a reply that cannot be read: {why}{told}"
        return self.failures.failure(FailureKind.MALFORMED_REPLY, message)

    def reported(self, error: Any) -> ModelCallFailed:
        """Make the failure for an error within the reply."""
        return self.failures.reported({"error": error}, self.headers)

    def _reported_in(self, data: bytes) -> ModelCallFailed | None:
        """Make the same from data of an unknown shape; returns None without an error in it."""
        parsed = parse(data)
        if isinstance(parsed, list) and parsed:
            parsed = parsed[0]  # so does Google
        if not isinstance(parsed, dict):
            return None
        is_error = parsed.get("error") or "error" in (parsed.get("object"), parsed.get("type"))
        return self.failures.reported(parsed, self.headers) if is_error else None

    def _write(self, text: str) -> None:
        """Take a piece of the tutor's text. Text after a stop reason revokes the stop reason."""
        if text:
            self._texts.append(text)
            self._begin()
        if text.strip():
            self._stop_reason = None

    def _reason(self) -> None:
        """Take a piece of reasoning, which is not part of the tutor's text."""
        self._reasoned = True
        self._stop_reason = None
        self._begin()

    def _begin(self) -> None:
        if self.streamed and self._first_token is None:
            self._first_token = self._last


class WholeBody(ReplyReading):
    """Takes any answer whole, such as the results of many calls."""

    largest = 500_000_000
    body = b""

    def take_event(self, event: Event) -> None:
        """Take no event: the answer is no stream."""

    def take_whole(self, body: bytes) -> None:
        """Keep the body, which is never complete before its end."""
        self.body = body

    def _usage(self) -> Usage:
        return Usage()
