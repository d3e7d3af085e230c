"""`run.requested`: a run was planned and is to be carried out. Consumed by the runner."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.run import Run
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.run.requested.v1"]
TYPE: Final[Type] = only_value(Type)


class RunRequestedData(BaseModel):
    """Which run; what is to be asked stands in the experiment's manifest."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run to carry out."""

    retry: int | None = Field(default=None, ge=1)
    """Which request to try the failed run again this is; None for the plan's."""


class RunRequested(Envelope):
    """A run was planned and is to be carried out."""

    type: Type = TYPE
    data: RunRequestedData

    @classmethod
    def of(cls, run: Run, *, source: str, time: datetime, retry: int = 0) -> RunRequested:
        again = (str(retry),) if retry else ()
        about = about_run(TYPE, run, *again, source=source, time=time)
        return cls(**about, data=RunRequestedData(run=run, retry=retry or None))
