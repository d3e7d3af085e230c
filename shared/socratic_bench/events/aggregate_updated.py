"""`aggregate.updated`: cells of an experiment were brought up to date. Broadcast."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from socratic_bench.domain.identifiers import content_name
from socratic_bench.events.envelope import Envelope, event_id

TYPE: Final = "org.socratic-bench.aggregate.updated.v1"


class AggregateUpdatedData(BaseModel):
    """How far the experiment is, and which models' cells were touched."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    planned: int = Field(ge=0)
    done: int = Field(ge=0)
    failed: int = Field(ge=0)
    models: Annotated[tuple[str, ...], FailFast()]


class AggregateUpdated(Envelope):
    """Cells of an experiment were brought up to date."""

    type: Literal["org.socratic-bench.aggregate.updated.v1"] = TYPE
    data: AggregateUpdatedData

    @classmethod
    def of(cls, data: AggregateUpdatedData, *, source: str, time: datetime) -> AggregateUpdated:
        content = content_name("content", data.model_dump(mode="json"))
        return cls(
            id=event_id("aggregate.updated", data.experiment_id, content),
            source=source,
            subject=data.experiment_id,
            time=time,
            partitionkey=data.experiment_id,
            correlationid=data.experiment_id,
            data=data,
        )
