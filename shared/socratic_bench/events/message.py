"""The message of a broker that carries an event."""

from __future__ import annotations

from typing import NamedTuple

from socratic_bench.events.codec import Event, decode, encode


class Message(NamedTuple):
    """An encoded event in transit."""

    id: str
    """The id of the event: the same for every copy and every redelivery."""

    type: str
    group: str
    body: bytes
    source: str = ""
    subject: str = ""
    correlation: str = ""
    """`source`, `subject` and `correlation` are for people; a delivery may lack them."""


class EncodedEvent(Message):
    """A message that was encoded in this process, with its event.

    It equals the message that another process makes of its parts.
    """

    event: Event | None = None
    """None in a copy with other parts."""


def to_message(event: Event) -> EncodedEvent:
    """Encode an event with the attributes that a broker needs."""
    message = EncodedEvent(
        event.id,
        event.type,
        event.partitionkey,
        encode(event),
        event.source,
        event.subject,
        event.correlationid,
    )
    message.event = event
    return message


def event_of(message: Message) -> Event:
    """Return the event that a message carries. Raises InvalidEvent, as `decode` does."""
    # D-009: within a process, events are not decoded again at each stage.
    known = message.event if isinstance(message, EncodedEvent) else None
    return known or decode(message.body)
