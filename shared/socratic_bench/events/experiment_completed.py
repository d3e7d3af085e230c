"""`experiment.completed`: every planned run is done. Broadcast; its id never changes."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.events.envelope import Envelope, about_experiment, only_value

Type = Literal["org.socratic-bench.experiment.completed.v1"]
TYPE: Final[Type] = only_value(Type)


class ExperimentCompletedData(BaseModel):
    """The result in runs."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    """The experiment that is complete."""

    planned: int = Field(ge=0)
    """Runs of the plan."""

    failed: int = Field(ge=0)
    """Runs among them that failed."""


class ExperimentCompleted(Envelope):
    """Every planned run of an experiment was scored, found unscorable or failed."""

    type: Type = TYPE
    data: ExperimentCompletedData

    @classmethod
    def of(
        cls, data: ExperimentCompletedData, *, source: str, time: datetime
    ) -> ExperimentCompleted:
        about = about_experiment(TYPE, data.experiment_id, source=source, time=time)
        return cls(**about, data=data)
