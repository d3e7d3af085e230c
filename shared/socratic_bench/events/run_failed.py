"""`run.failed`: a run gave no response after all its tries. Consumed by the curator."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from socratic_bench.domain.run import RunFailure
from socratic_bench.events.envelope import Envelope, event_id

TYPE: Final = "org.socratic-bench.run.failed.v1"


class RunFailed(Envelope):
    """A run gave no response after all its tries; an error is never a score."""

    type: Literal["org.socratic-bench.run.failed.v1"] = TYPE
    data: RunFailure

    @classmethod
    def of(
        cls, failure: RunFailure, *, source: str, time: datetime, cause: str | None = None
    ) -> RunFailed:
        run = failure.run
        return cls(
            id=event_id("run.failed", run.run_id, failure.turn, failure.profile),
            source=source,
            subject=run.run_id,
            time=time,
            partitionkey=run.model_id,
            correlationid=run.experiment_id,
            causationid=cause,
            data=failure,
        )
