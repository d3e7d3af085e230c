"""`experiment.completed`: every planned run is done. Broadcast; its id is the same for ever."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.events.envelope import Envelope, event_id

TYPE: Final = "org.socratic-bench.experiment.completed.v1"


class ExperimentCompletedData(BaseModel):
    """How it ended, in runs."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    planned: int = Field(ge=0)
    failed: int = Field(ge=0)


class ExperimentCompleted(Envelope):
    """Every planned run of an experiment is scored, unscorable or failed."""

    type: Literal["org.socratic-bench.experiment.completed.v1"] = TYPE
    data: ExperimentCompletedData

    @classmethod
    def of(
        cls, data: ExperimentCompletedData, *, source: str, time: datetime
    ) -> ExperimentCompleted:
        return cls(
            id=event_id("experiment.completed", data.experiment_id),
            source=source,
            subject=data.experiment_id,
            time=time,
            partitionkey=data.experiment_id,
            correlationid=data.experiment_id,
            data=data,
        )
