"""`response.scored`: the judge scored a response, or could not. The curator consumes it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.response.scored.v1"]
TYPE: Final[Type] = only_value(Type)


class ResponseScored(Envelope):
    """The judge scored a response, or found it unscorable: unscored is not zero."""

    type: Type = TYPE
    data: ScoredResponse

    @classmethod
    def of(
        cls, scored: ScoredResponse, *, source: str, time: datetime, cause: str | None = None
    ) -> ResponseScored:
        key = scored.turn, scored.profile
        about = about_run(TYPE, scored.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=scored)
