"""`/api/experiments/{experiment_id}`: one experiment in detail, and its pending runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, ReadyBytes, make_ready, ready_response
from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.routes.paging import whole_number
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import UnknownExperiment
from socratic_bench.ports.clock import Clock
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.experiment_status import (
    ExperimentStatus,
    ModelProgress,
    StatusStore,
    experiment_status,
    model_progress,
    model_troubles,
)
from socratic_bench.reporting.pending import PendingRun, PendingStore, pending_runs

PATH: Final = "/api/experiments/{experiment_id}"
ID_LIMIT: Final = 200
"""Characters of an id or a name."""

_PENDING: Final = 50
_PENDING_LIMIT: Final = 500
_LOOKED_SECONDS: Final = 0.5
"""Seconds that the search for pending runs takes at most: done ones lie between them."""

PROBLEMS: Final = {
    400: "Several experiments could be meant; the detail names them",
    404: "There is no such experiment",
    503: "The store does not answer",
}

Read = Callable[[str], Awaitable[ReadyBody]]
"""Returns the detail of the experiment with this id or name."""


class DetailStore(StatusStore, PendingStore, Protocol):
    """The roles of the store that tell how far an experiment is, run by run."""


class ExperimentDetail(ExperimentStatus):
    """The status of an experiment, with its models and their troubles."""

    dimensions: dict[str, int]
    """The number of scenarios in each dimension."""

    scenarios: int
    repeats: int
    submitted: bool
    """Whether services carry it out; false for one of `socratic-bench run`."""

    models_progress: tuple[ModelProgress, ...]
    """Each model's progress, failures and cost, in the order of the plan."""

    troubles: tuple[Trouble, ...]
    """The models whose calls fail at the moment."""


class PendingRuns(BaseModel):
    """The first pending runs of an experiment, those of conversations with runs left first."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    runs: tuple[PendingRun, ...]
    has_more: bool
    """Whether further runs may be pending: the page is full, or the search took long."""


def detail_reader(store: DetailStore, ready: ReadyBytes, clock: Clock) -> Read:
    """Return a function that reads details, each made once for each revision of the store."""

    async def read(wanted: str) -> ReadyBody:
        async def encode() -> bytes:
            return to_json(await _detail(store, clock, wanted))

        return await ready.get(f"experiment {wanted}", encode)

    return read


def endpoints(store: DetailStore, read: Read) -> list[Endpoint]:
    """Return the endpoints that read one experiment."""

    async def show_experiment(request: Request) -> Response:
        return ready_response(request, await read(named_in(request)))

    async def list_pending_runs(request: Request) -> Response:
        limit = whole_number(request, "limit", default=_PENDING, low=1, high=_PENDING_LIMIT)
        body = to_json(await _pending(store, named_in(request), limit))
        return ready_response(request, make_ready(body, "application/json"))

    return [
        Endpoint(
            PATH,
            show_experiment,
            "One experiment: progress by model, failures with reasons, cost so far, state",
            ExperimentDetail,
            description="The id may be the start of an id, an occasion or a name that only one "
            "experiment has.",
            problems=PROBLEMS,
        ),
        Endpoint(
            f"{PATH}/pending",
            list_pending_runs,
            "The first pending runs of an experiment by name, and what each waits for",
            PendingRuns,
            parameters=(
                QueryParameter(
                    "limit",
                    "How many to return.",
                    {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": _PENDING_LIMIT,
                        "default": _PENDING,
                    },
                ),
            ),
            problems={**PROBLEMS, 422: "`limit` is out of bounds"},
        ),
    ]


def named_in(request: Request) -> str:
    """Return the id or name in the path. Raises UnknownExperiment for one that none can have."""
    wanted = str(request.path_params["experiment_id"])
    if len(wanted) > ID_LIMIT or not wanted.isprintable():
        raise UnknownExperiment("experiment: no experiment has such an id or name")
    return wanted


async def _detail(store: DetailStore, clock: Clock, wanted: str) -> ExperimentDetail:
    experiment = await find_experiment(store, wanted)
    status = await experiment_status(store, experiment, clock.now())
    manifest = experiment.manifest
    dimensions: dict[str, int] = {}
    for scenario in manifest.scenarios:
        dimensions[scenario.dimension] = dimensions.get(scenario.dimension, 0) + 1
    return ExperimentDetail(
        **status.model_dump(),
        dimensions=dimensions,
        scenarios=len(manifest.scenarios),
        repeats=manifest.repeats,
        submitted=experiment.submitted,
        models_progress=await model_progress(store, experiment),
        troubles=await model_troubles(store, experiment),
    )


async def _pending(store: DetailStore, wanted: str, limit: int) -> PendingRuns:
    experiment = await find_experiment(store, wanted)
    runs: list[PendingRun] = []
    has_more = False
    try:
        async with asyncio.timeout(_LOOKED_SECONDS):
            async for run in pending_runs(experiment, store):
                if len(runs) == limit:
                    has_more = True
                    break
                runs.append(run)
    except TimeoutError:
        has_more = True
    return PendingRuns(experiment_id=experiment.experiment_id, runs=tuple(runs), has_more=has_more)
