"""`aggregate.updated`: the curator updated cells of an experiment. Broadcast."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from socratic_bench.domain.identifiers import content_name
from socratic_bench.events.envelope import Envelope, about_experiment, only_value

Type = Literal["org.socratic-bench.aggregate.updated.v1"]
TYPE: Final[Type] = only_value(Type)


class AggregateUpdatedData(BaseModel):
    """The progress of the experiment, and the models of the updated cells."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    """The experiment that the cells belong to."""

    planned: int = Field(ge=0)
    """Runs of the plan."""

    done: int = Field(ge=0)
    """Runs that were scored, found unscorable or failed."""

    failed: int = Field(ge=0)
    """Runs among them that failed."""

    models: Annotated[tuple[str, ...], FailFast()]
    """The ids of the models whose cells changed."""


class AggregateUpdated(Envelope):
    """The curator updated cells of an experiment."""

    type: Type = TYPE
    data: AggregateUpdatedData

    @classmethod
    def of(cls, data: AggregateUpdatedData, *, source: str, time: datetime) -> AggregateUpdated:
        content = content_name("content", data.model_dump(mode="json"))
        about = about_experiment(TYPE, data.experiment_id, content, source=source, time=time)
        return cls(**about, data=data)
