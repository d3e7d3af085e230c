"""Decodes server-sent events, the frames of a streamed reply.

It follows the WHATWG's HTML standard and ignores `id` and `retry`: the client never reconnects.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import NamedTuple


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
        return [event for line in lines if (event := self._take(line)) is not None]

    def _without_mark(self, data: bytes) -> bytes:
        if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(BOM_UTF8)

    def _take(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")  # a comment is a field without a name
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        return None

    def _dispatch(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return Event(name, b"\n".join(data)) if data else None
