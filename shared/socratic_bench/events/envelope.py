"""The envelope every event travels in: the attributes of CloudEvents 1.0, as structured JSON.

`partitionkey` is CloudEvents' partitioning extension and holds the group of the message (the
model); `correlationid` names the experiment, `causationid` the event that led to this one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Envelope(BaseModel):
    """The attributes all events have. A reader ignores attributes it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"] = "1.0"
    id: str = Field(min_length=1)
    """Says what the event says: the same fact has the same id, whoever publishes it, whenever."""

    source: str = Field(min_length=1)
    """The service that published it."""

    subject: str
    """What it is about: a run or an experiment."""

    time: datetime
    """When it happened, as far as the publisher knows. Nothing depends on it."""

    datacontenttype: Literal["application/json"] = "application/json"
    partitionkey: str
    correlationid: str
    causationid: str | None = None


def event_id(kind: str, *key: str | int) -> str:
    """The id of a fact: its kind and what identifies it, never the clock."""
    return "/".join((kind, *map(str, key)))
