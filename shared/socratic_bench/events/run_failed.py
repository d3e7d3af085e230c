"""`run.failed`: a run gave no response after all its tries. The curator consumes it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from socratic_bench.domain.run import RunFailure
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.run.failed.v1"]
TYPE: Final[Type] = only_value(Type)


class RunFailed(Envelope):
    """A run gave no response after all its tries; an error is never a score."""

    type: Type = TYPE
    data: RunFailure

    @classmethod
    def of(
        cls, failure: RunFailure, *, source: str, time: datetime, cause: str | None = None
    ) -> RunFailed:
        key = failure.turn, failure.profile
        about = about_run(TYPE, failure.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=failure)
