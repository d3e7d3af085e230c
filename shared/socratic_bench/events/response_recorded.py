"""`response.recorded`: a tutor's response is stored. Consumed by the judge."""

from __future__ import annotations

from typing import Final, Literal

from socratic_bench.domain.response import Response
from socratic_bench.events.envelope import Envelope, event_id

TYPE: Final = "org.socratic-bench.response.recorded.v1"


class ResponseRecorded(Envelope):
    """A tutor's response is stored; it carries all that any profile looks at."""

    type: Literal["org.socratic-bench.response.recorded.v1"] = TYPE
    data: Response

    @classmethod
    def of(cls, response: Response, *, source: str, cause: str | None = None) -> ResponseRecorded:
        run = response.run
        return cls(
            id=event_id("response.recorded", run.run_id, response.turn, response.profile),
            source=source,
            subject=run.run_id,
            time=response.recorded_at,
            partitionkey=run.model_id,
            correlationid=run.experiment_id,
            causationid=cause,
            data=response,
        )
