"""The codec of events, and the message of a broker that carries one."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from socratic_bench.errors import InvalidEvent
from socratic_bench.events.event_types import (
    AggregateUpdated,
    ExperimentCompleted,
    ResponseRecorded,
    ResponseScored,
    RunFailed,
    RunRequested,
)
from socratic_bench.invalid_values import mistakes_in

Event = (
    RunRequested
    | ResponseRecorded
    | ResponseScored
    | RunFailed
    | AggregateUpdated
    | ExperimentCompleted
)

# Names repeat from event to event and are worth caching; ids and texts do not.
_EVENT: TypeAdapter[Event] = TypeAdapter(
    Annotated[Event, Field(discriminator="type")], config=ConfigDict(cache_strings="keys")
)

EVENT_TYPES: Final = tuple(event.model_fields["type"].default for event in get_args(Event))


MOST_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of an event; a conversation of many long answers takes some megabytes."""


def encode(event: Event) -> bytes:
    """Encode an event as structured-mode CloudEvents JSON (application/cloudevents+json)."""
    return event.__pydantic_serializer__.to_json(event)


def decode(body: bytes) -> Event:
    """Decode the event in `body`. Raises InvalidEvent, which names the error and its place."""
    if len(body) > MOST_BYTES:
        raise InvalidEvent(f"larger than {MOST_BYTES:,} bytes, the limit of an event")
    try:
        return _EVENT.validate_json(body)
    except ValidationError as error:
        raise InvalidEvent(f"not an event this version reads: {mistakes_in(error)}") from None


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
