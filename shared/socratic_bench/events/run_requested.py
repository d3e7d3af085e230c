"""`run.requested`: a planned run is due. The runner consumes it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.run import Run
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.run.requested.v1"]
TYPE: Final[Type] = only_value(Type)


class RunRequestedData(BaseModel):
    """The run; the experiment's manifest has the questions."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run to carry out."""

    retry: int | None = Field(default=None, ge=1)
    """The number of the request to retry a failed run; None for the plan's own request."""


class RunRequested(Envelope):
    """A planned run is due."""

    type: Type = TYPE
    data: RunRequestedData

    @classmethod
    def of(cls, run: Run, *, source: str, time: datetime, retry: int = 0) -> RunRequested:
        again = (str(retry),) if retry else ()
        about = about_run(TYPE, run, *again, source=source, time=time)
        return cls(**about, data=RunRequestedData(run=run, retry=retry or None))
