"""`response.recorded`: a tutor's response is stored. Consumed by the judge."""

from __future__ import annotations

from typing import Final, Literal

from socratic_bench.domain.response import Response
from socratic_bench.events.envelope import Envelope, about_run, only_value

Type = Literal["org.socratic-bench.response.recorded.v1"]
TYPE: Final[Type] = only_value(Type)


class ResponseRecorded(Envelope):
    """A tutor's response is stored; it carries all that any profile looks at."""

    type: Type = TYPE
    data: Response

    @classmethod
    def of(cls, response: Response, *, source: str, cause: str | None = None) -> ResponseRecorded:
        key, time = (response.turn, response.profile), response.recorded_at
        about = about_run(TYPE, response.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=response)
