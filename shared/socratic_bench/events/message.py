"""The message of a broker that carries an event."""

from __future__ import annotations

from typing import NamedTuple

from socratic_bench.events.codec import Event, encode


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


def to_message(event: Event) -> Message:
    """Encode an event with the attributes that a broker needs."""
    return Message(
        event.id,
        event.type,
        event.partitionkey,
        encode(event),
        event.source,
        event.subject,
        event.correlationid,
    )
