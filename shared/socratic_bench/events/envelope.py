"""The envelope of every event: the attributes of CloudEvents 1.0, as structured JSON.

`partitionkey` is CloudEvents' partitioning extension and holds the group of the message (the
model); `correlationid` names the experiment, `causationid` the event that led to this one.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal, TypedDict, get_args

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.run import Run

PREFIX: Final = "org.socratic-bench."
"""The prefix of every type; a kind, such as `run.failed`, and a version follow."""


class Envelope(BaseModel):
    """The attributes of all events. A reader ignores attributes that it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"] = "1.0"
    """The version of CloudEvents."""

    id: str = Field(min_length=1)
    """Names the fact: every service gives the same fact the same id at any time."""

    source: str = Field(min_length=1)
    """The service that published it."""

    subject: str
    """The run or the experiment that the event is about."""

    time: datetime
    """The publisher's time of the fact. Nothing depends on it."""

    datacontenttype: Literal["application/json"] = "application/json"
    """The media type of `data`."""

    partitionkey: str
    """The group of the message: the model's id, or the experiment's."""

    correlationid: str
    """The id of the experiment."""

    causationid: str | None = None
    """The id of the event that led to this one; None: none did."""


class Attributes(TypedDict):
    """The attributes of one event that neither its type nor its data gives."""

    id: str
    source: str
    subject: str
    time: datetime
    partitionkey: str
    correlationid: str
    causationid: str | None


def only_value(literal: Any) -> Any:
    """Return the value of a Literal type with one value."""
    [value] = get_args(literal)
    return value


@lru_cache(maxsize=64)
def kind_of(event_type: str) -> str:
    """Return an event type without prefix and version: `run.failed`."""
    return event_type.removeprefix(PREFIX).rpartition(".")[0]


def about_run(
    event_type: str,
    run: Run,
    *key: str | int,
    source: str,
    time: datetime,
    cause: str | None = None,
) -> Attributes:
    """Return the attributes of a fact about a run; `key` is unique within its type and run."""
    return Attributes(
        id=_event_id(event_type, run.run_id, *key),
        source=source,
        subject=run.run_id,
        time=time,
        partitionkey=run.model_id,
        correlationid=run.experiment_id,
        causationid=cause,
    )


def about_experiment(
    event_type: str, experiment_id: str, *key: str, source: str, time: datetime
) -> Attributes:
    """Return the attributes of a fact about an experiment; `key` is unique within its type."""
    return Attributes(
        id=_event_id(event_type, experiment_id, *key),
        source=source,
        subject=experiment_id,
        time=time,
        partitionkey=experiment_id,
        correlationid=experiment_id,
        causationid=None,
    )


def _event_id(event_type: str, *key: str | int) -> str:
    """Return the id of a fact: its kind and its key, never a time."""
    return "/".join((kind_of(event_type), *map(str, key)))
