"""Messages on the wire: single, or several as a batch, with AMQP's properties and headers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractIncomingMessage, AbstractMessage

from socratic_bench.adapters.brokers.batches import content_of, content_type_of, parts_of, split
from socratic_bench.adapters.brokers.rabbitmq.topology import GROUP_HEADER
from socratic_bench.events.codec import Message

BATCH_BYTES: Final = 512 * 1024
"""A batch of this many bytes is full, even with few messages."""

ATTEMPTS_HEADER: Final = "socratic-attempts"
"""The header with the number of counted retries; a consumer writes it into each copy."""

DEATHS_HEADER: Final = "socratic-deaths"
"""The header with the number of consumers that a suspect has ended."""

DUE_HEADER: Final = "socratic-due"
"""The header with the time at which a delayed message is due, in Unix milliseconds."""

REASON_HEADER: Final = "socratic-reason"
"""The header with the reason of a dead letter."""

_ID, _TYPE = "cloudEvents:id", "cloudEvents:type"
_SOURCE, _SUBJECT = "cloudEvents:source", "cloudEvents:subject"
_CORRELATION = "cloudEvents:correlationid"
_PARTS = "socratic-parts"
"""The header with the id, group and size in bytes of each message of a batch."""

_COUNTS: Final = ("x-delivery-count", "x-acquired-count")
"""The headers in which the server counts how often a message came back."""

_SHORT = 255
"""The largest AMQP property, in bytes."""


def to_amqp(
    messages: Sequence[Message],
    *,
    attempts: int = 0,
    deaths: int = 0,
    reason: str | None = None,
    due: float | None = None,
) -> AmqpMessage:
    """Encode one message, or several of one type as a batch."""
    first = messages[0]
    headers: dict[str, Any] = {GROUP_HEADER: first.group, _TYPE: first.type}
    if attempts:
        headers[ATTEMPTS_HEADER] = attempts
    if deaths:
        headers[DEATHS_HEADER] = deaths
    if reason is not None:
        headers[REASON_HEADER] = reason
    if due is not None:
        headers[DUE_HEADER] = round(due * 1000)
    if len(messages) == 1:
        headers |= {
            _ID: first.id,
            _SOURCE: first.source,
            _SUBJECT: first.subject,
            _CORRELATION: first.correlation,
        }
    else:
        headers[_PARTS] = parts_of(messages)
    return AmqpMessage(
        content_of(messages),
        headers=headers,
        content_type=content_type_of(messages),
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=_short(first.id),
        type=_short(first.type),
        app_id=_short(first.source),
        correlation_id=_short(first.correlation),
    )


def singles(batch: AmqpMessage) -> list[AmqpMessage]:
    """Encode the messages of a batch one by one; no message if it is none."""
    if _PARTS not in batch.headers:
        return []
    return [
        to_amqp(
            [each],
            attempts=attempts_before(batch),
            deaths=_count(batch, DEATHS_HEADER),
            reason=reason_of(batch),
            due=due_of(batch) or None,
        )
        for each in from_amqp(batch)
    ]


def same(incoming: AbstractIncomingMessage) -> AmqpMessage:
    """Encode a message as it came, without the headers that its server wrote."""
    headers = {name: each for name, each in incoming.headers.items() if name not in _COUNTS}
    return AmqpMessage(
        incoming.body,
        headers=headers,
        content_type=incoming.content_type,
        content_encoding=incoming.content_encoding,
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=incoming.message_id,
        timestamp=incoming.timestamp,
        type=incoming.type,
        app_id=incoming.app_id,
        correlation_id=incoming.correlation_id,
    )


def from_amqp(incoming: AbstractMessage) -> list[Message]:
    """Decode the messages in `incoming`, at least one. A foreign message passes unchanged."""
    headers = incoming.headers
    event_type = _text(headers.get(_TYPE)) or incoming.type or ""
    parts = headers.get(_PARTS)
    if not isinstance(parts, list):
        return [_single(incoming, event_type)]
    texts = [each if isinstance(each, int) else _text(each) for each in parts]
    return split(incoming.body, event_type, texts) or [_single(incoming, event_type)]


def _single(incoming: AbstractMessage, event_type: str) -> Message:
    headers = incoming.headers
    return Message(
        _text(headers.get(_ID)) or incoming.message_id or "",
        event_type,
        _text(headers.get(GROUP_HEADER)),
        incoming.body,
        _text(headers.get(_SOURCE)),
        _text(headers.get(_SUBJECT)),
        _text(headers.get(_CORRELATION)),
    )


def announcement(groups: Sequence[str]) -> AmqpMessage:
    """Encode the names of groups that a process publishes to."""
    return AmqpMessage(
        json.dumps(groups).encode(),
        content_type="application/json",
        delivery_mode=DeliveryMode.NOT_PERSISTENT,
    )


def announced(incoming: AbstractMessage) -> frozenset[str]:
    """Decode the groups of an announcement; none if it is a foreign message."""
    try:
        groups = json.loads(incoming.body)
    except ValueError:
        return frozenset()
    if not isinstance(groups, list):
        return frozenset()
    return frozenset(each for each in groups if isinstance(each, str))


def attempts_before(incoming: AbstractMessage) -> int:
    """Return the number of counted retries of a message."""
    return _count(incoming, ATTEMPTS_HEADER)


def redeliveries_of(incoming: AbstractMessage) -> int:
    """Return how often a message came back unsettled to its present queue.

    RabbitMQ 3 has one count. RabbitMQ 4 leaves orderly returns out of that count, and has a second
    count of everything.
    """
    return max(_count(incoming, name) for name in _COUNTS)


def deaths_of(incoming: AbstractMessage) -> int:
    """Return how many consumers of a suspect ended without settling it."""
    return _count(incoming, DEATHS_HEADER) + redeliveries_of(incoming)


def due_of(incoming: AbstractMessage) -> float:
    """Return the time at which a delayed message is due, in Unix seconds; 0 without a header."""
    return _count(incoming, DUE_HEADER) / 1000


def reason_of(incoming: AbstractMessage) -> str | None:
    """Return the reason that a consumer gave for a dead letter, if any."""
    reason = incoming.headers.get(REASON_HEADER)
    return None if reason is None else _text(reason)


def _count(incoming: AbstractMessage, header: str) -> int:
    count = incoming.headers.get(header, 0)
    return count if isinstance(count, int) else 0


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)


def _short(value: str) -> str | None:
    """Cut `value` to the size of a property; None, for no property, if it is empty."""
    return value.encode()[:_SHORT].decode(errors="ignore") or None
