"""`response.scored`: a response has its score, or was found to have none. For the curator."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.response.scored.v1"]
TYPE: Final[Type] = only_value(Type)


class ResponseScored(Envelope):
    """A response was scored, or found unscorable: unscored is not zero."""

    type: Type = TYPE
    data: ScoredResponse

    @classmethod
    def of(
        cls, scored: ScoredResponse, *, source: str, time: datetime, cause: str | None = None
    ) -> ResponseScored:
        key = scored.turn, scored.profile
        about = about_run(TYPE, scored.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=scored)
