"""`response.recorded`: the store has a tutor's response. The judge consumes it."""

from __future__ import annotations

from typing import Final, Literal

from socratic_bench.domain.response import Response
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.response.recorded.v1"]
TYPE: Final[Type] = only_value(Type)


class ResponseRecorded(Envelope):
    """The store has a tutor's response. The event carries all that a profile reads."""

    type: Type = TYPE
    data: Response

    @classmethod
    def of(cls, response: Response, *, source: str, cause: str | None = None) -> ResponseRecorded:
        key, time = (response.turn, response.profile), response.recorded_at
        about = about_run(TYPE, response.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=response)
