"""`/api/experiments`: the plans, their progress and their cost so far."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.routes.paging import OFFSET_LIMIT, page_of, whole_number
from socratic_bench.ports.clock import Clock
from socratic_bench.reporting.experiment_status import (
    ExperimentStatus,
    StatusStore,
    experiment_statuses,
)

_PAGE = 100
_PAGE_LIMIT = 500
_PARAMETERS = page_of(_PAGE, _PAGE_LIMIT)
KEY = f"experiments 0 {_PAGE}"
"""The cache key of the first page."""


class ExperimentPage(BaseModel):
    """Experiments, newest first."""

    model_config = ConfigDict(frozen=True)

    experiments: tuple[ExperimentStatus, ...]
    total: int
    """The number of all experiments."""

    offset: int


def endpoints(store: StatusStore, ready: ReadyBytes, clock: Clock) -> list[Endpoint]:
    """Return the endpoint of the experiments, a page at a time."""

    async def list_experiments(request: Request) -> Response:
        offset = whole_number(request, "offset", default=0, low=0, high=OFFSET_LIMIT)
        limit = whole_number(request, "limit", default=_PAGE, low=1, high=_PAGE_LIMIT)

        async def encode() -> bytes:
            return to_json(await _page(store, clock.now(), offset, limit))

        return ready_response(request, await ready.get(f"experiments {offset} {limit}", encode))

    return [
        Endpoint(
            "/api/experiments",
            list_experiments,
            "Experiments, newest first, with progress and cost so far",
            ExperimentPage,
            parameters=_PARAMETERS,
            ready=partial(ready.fresh, KEY),
            problems={
                422: "`offset` or `limit` is out of bounds",
                503: "The store does not answer",
            },
        )
    ]


async def _page(store: StatusStore, now: datetime, offset: int, limit: int) -> ExperimentPage:
    every = await store.outlines()
    statuses = await experiment_statuses(store, every[offset : offset + limit], now)
    return ExperimentPage(experiments=tuple(statuses), total=len(every), offset=offset)
