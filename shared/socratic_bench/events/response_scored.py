"""`response.scored`: a response has its score, or was found to have none. For the curator."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.envelope import Envelope, event_id

TYPE: Final = "org.socratic-bench.response.scored.v1"


class ResponseScored(Envelope):
    """A response was scored, or found unscorable: unscored is not zero."""

    type: Literal["org.socratic-bench.response.scored.v1"] = TYPE
    data: ScoredResponse

    @classmethod
    def of(
        cls, scored: ScoredResponse, *, source: str, time: datetime, cause: str | None = None
    ) -> ResponseScored:
        run = scored.run
        return cls(
            id=event_id("response.scored", run.run_id, scored.turn, scored.profile),
            source=source,
            subject=run.run_id,
            time=time,
            partitionkey=run.model_id,
            correlationid=run.experiment_id,
            causationid=cause,
            data=scored,
        )
