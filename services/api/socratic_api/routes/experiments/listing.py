"""`/api/experiments`: the plans, their progress and their cost so far."""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.routes.experiment_choice import SINCE, UNTIL, asked_key, chosen_time
from socratic_api.routes.paging import (
    OFFSET_LIMIT,
    next_offset,
    page_of,
    page_within,
    whole_number,
)
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.clock import Clock
from socratic_bench.reporting.experiment_choice import matching
from socratic_bench.reporting.experiment_status import (
    ExperimentStatus,
    StatusStore,
    experiment_statuses,
)

_PAGE = 100
_PAGE_LIMIT = 500
_LONGEST_SEARCH = 200
_SEARCH = QueryParameter(
    "q",
    "Words, each of which begins the experiment's id or stands in its name, its occasion or the id "
    "of one of its models; capitals do not matter.",
    {"type": "string", "maxLength": _LONGEST_SEARCH},
)
_PARAMETERS = (_SEARCH, SINCE, UNTIL, *page_of(_PAGE, _PAGE_LIMIT))
KEY = f"experiments 0 {_PAGE}"
"""The cache key of the first page."""


class ExperimentPage(BaseModel):
    """Experiments, newest first."""

    model_config = ConfigDict(frozen=True)

    experiments: tuple[ExperimentStatus, ...]
    total: int
    """The number of all experiments that the search and the time leave."""

    offset: int
    next_offset: int | None
    """Where the next page begins; null after the last."""


def endpoints(store: StatusStore, ready: ReadyBytes, clock: Clock) -> list[Endpoint]:
    """Return the endpoint of the experiments, a page at a time."""

    async def list_experiments(request: Request) -> Response:
        offset = whole_number(request, "offset", default=0, low=0, high=OFFSET_LIMIT)
        limit = whole_number(request, "limit", default=_PAGE, low=1, high=_PAGE_LIMIT)
        time, words = chosen_time(request), _words(request)

        async def encode() -> bytes:
            every = matching(time.fitting(await store.outlines()), words)
            some = every[offset : offset + limit]
            statuses = page_within(await experiment_statuses(store, some, clock.now()))
            page = ExperimentPage(
                experiments=statuses,
                total=len(every),
                offset=offset,
                next_offset=next_offset(offset, len(statuses), len(every)),
            )
            return to_json(page)

        key = f"experiments {offset} {limit}{asked_key(words, *time.key)}"
        return ready_response(request, await ready.get(key, encode))

    return [
        Endpoint(
            "/api/experiments",
            list_experiments,
            "Experiments, newest first, with progress and cost so far",
            ExperimentPage,
            parameters=_PARAMETERS,
            ready=partial(ready.fresh, KEY),
            problems={
                422: "A parameter is out of bounds, or no time",
                503: "The store does not answer",
            },
        )
    ]


def _words(request: Request) -> str:
    """Return the words of a search, in one form; empty without one. Raises InvalidInput."""
    text: str = request.query_params.get("q", "")
    if len(text) > _LONGEST_SEARCH:
        raise InvalidInput(f"q: longer than {_LONGEST_SEARCH} characters")
    return " ".join(sorted({*text.casefold().split()}))
