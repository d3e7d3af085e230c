"""Messages on the wire: single, or several as a batch.

Message attributes repeat the events' attributes for people and filters, in the encoding of
CloudEvents' HTTP headers. One more attribute holds what the adapter needs.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from socratic_bench.adapters.brokers.batches import content_of, content_type_of, parts_of, split
from socratic_bench.events.codec import Message

BATCH_BYTES: Final = 60 * 1024
"""A batch of this many bytes is full: with its attributes it is one billed request, of 64 KiB."""

MOST_BYTES: Final = 1024 * 1024
"""The most bytes of a message of SQS, and of all messages of one request, attributes included."""

MOST_BROADCAST_BYTES: Final = 256 * 1024
"""The same for SNS."""

STATE: Final = "socratic-state"
TYPE: Final = "ce-type"
GROUP: Final = "ce-partitionkey"
_CONTENT_TYPE: Final = "content-type"
_ID, _SOURCE, _SUBJECT = "ce-id", "ce-source", "ce-subject"
_CORRELATION: Final = "ce-correlationid"

_REFUSED: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS refuses, or replaces."""

_PLAIN: Final = "".join(sorted(set(string.printable[:95]) - {"%"}))
"""The characters of an attribute that stand for themselves."""

_EMPTY: Final = "="
"""Stands for an empty body, which SQS refuses: it is not base64 of anything."""


@dataclass(frozen=True, slots=True)
class WireState:
    """What a message carries for the adapter; a consumer writes it into each copy."""

    attempts: int = 0
    """Counted retries."""

    redeliveries: int = 0
    """Unsettled returns before this copy was sent."""

    postponed: int = 0
    """How often in a row it came to consumers that had the share of its group in hand."""

    due: float = 0.0
    """The time at which a delayed message is due, in Unix seconds."""

    reason: str | None = None
    """The reason of a dead letter."""

    parts: tuple[str | int, ...] = ()
    """The id, group and size in bytes of each message of a batch."""

    base64: bool = False
    """Whether the body is base64."""

    claim: str | None = None
    """The key of the body in S3."""

    def encode(self) -> str | None:
        """Return it as the value of an attribute; None if there is nothing to say."""
        default = WireState()
        said = {
            name: value for name, value in asdict(self).items() if value != getattr(default, name)
        }
        return json.dumps(said, separators=(",", ":")) if said else None

    @classmethod
    def decode(cls, value: str | None) -> WireState:
        """Read it; a stranger's value counts as nothing."""
        try:
            read = json.loads(value or "{}")
        except ValueError:
            return cls()
        if not isinstance(read, dict):
            return cls()
        known = {name: read[name] for name in _KINDS if isinstance(read.get(name), _KINDS[name])}
        if "parts" in known:
            known["parts"] = tuple(known["parts"])
        return cls(**known)


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "attempts": (int,),
    "redeliveries": (int,),
    "postponed": (int,),
    "due": (int, float),
    "reason": (str,),
    "parts": (list,),
    "base64": (bool,),
    "claim": (str,),
}


class Encoded(NamedTuple):
    """A message as SQS and SNS take it."""

    body: str
    attributes: Mapping[str, str]

    @property
    def group(self) -> str:
        """The group of all its messages; empty if they differ."""
        return unquote(self.attributes.get(GROUP, ""))

    @property
    def size(self) -> int:
        """The bytes that count for a message's limit, or a few more."""
        attributes = sum(
            len(name) + len("String") + len(value) for name, value in self.attributes.items()
        )
        return len(self.body.encode()) + attributes

    def with_state(self, state: WireState) -> Encoded:
        """Return the same message with another state."""
        attributes = {name: value for name, value in self.attributes.items() if name != STATE}
        if said := state.encode():
            attributes[STATE] = said
        return Encoded(self.body, attributes)


def encode(
    messages: Sequence[Message], state: WireState | None = None, *, claim: str | None = None
) -> Encoded:
    """Encode one message, or several of one type as a batch.

    With a `claim` the body only names the place of the content, which `content_of` returns.
    """
    state = state or WireState()
    first = messages[0]
    attributes = {_CONTENT_TYPE: content_type_of(messages), TYPE: first.type}
    parts: tuple[str | int, ...] = ()
    if len(messages) == 1:
        attributes |= {
            _ID: first.id,
            _SOURCE: first.source,
            _SUBJECT: first.subject,
            _CORRELATION: first.correlation,
        }
    else:
        parts = tuple(parts_of(messages))
    if all(each.group == first.group for each in messages):
        attributes[GROUP] = first.group
    body, is_base64 = (claim, False) if claim else _text(content_of(messages))
    encoded = Encoded(
        body,
        {name: quote(value, safe=_PLAIN) for name, value in attributes.items() if value},
    )
    return encoded.with_state(
        WireState(
            state.attempts,
            state.redeliveries,
            state.postponed,
            state.due,
            state.reason,
            parts,
            is_base64,
            claim,
        )
    )


def decode(encoded: Encoded, content: bytes, state: WireState, message_id: str) -> list[Message]:
    """Decode the messages in `content`, at least one. A foreign message passes unchanged."""
    event_type = _attribute(encoded, TYPE)
    return split(content, event_type, state.parts) or [
        Message(
            _attribute(encoded, _ID) or message_id,
            event_type,
            encoded.group,
            content,
            _attribute(encoded, _SOURCE),
            _attribute(encoded, _SUBJECT),
            _attribute(encoded, _CORRELATION),
        )
    ]


def bytes_of(body: str, state: WireState) -> bytes:
    """Return the content of a message that has no claim."""
    if not state.base64:
        return body.encode()
    try:
        return b"" if body == _EMPTY else base64.b64decode(body, validate=True)
    except ValueError:
        return body.encode()


def typed(attributes: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return attributes in the form of a request."""
    return {
        name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
    }


def untyped(attributes: Any, value: Iterable[str]) -> dict[str, str]:
    """Return the attributes of a request, whose values stand under one of the names `value`."""
    if not isinstance(attributes, Mapping):
        return {}
    return {
        str(name): str(typed[key])
        for name, typed in attributes.items()
        if isinstance(typed, Mapping)
        for key in value
        if typed.get(key) is not None
    }


def _text(content: bytes) -> tuple[str, bool]:
    """Return content as SQS lets it pass, and whether that is base64."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or _REFUSED.search(text):
        return base64.b64encode(content).decode() or _EMPTY, True
    return text, False


def _attribute(encoded: Encoded, name: str) -> str:
    return unquote(encoded.attributes.get(name, ""))
