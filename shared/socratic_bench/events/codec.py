"""The codec of events."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from socratic_bench.errors import InvalidEvent
from socratic_bench.events.aggregate_updated import AggregateUpdated
from socratic_bench.events.experiment_completed import ExperimentCompleted
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.response_scored import ResponseScored
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
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
