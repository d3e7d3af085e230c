"""`/api/experiments`: the plans and their progress; one experiment in detail, and as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, ReadyBytes, make_ready, ready_response
from socratic_api.answers.streams import MEDIA_TYPE, MOST_STREAMS, Streams
from socratic_api.capabilities import Capabilities
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.http.problems import Conflict
from socratic_api.routes.query import (
    OFFSET_LIMIT,
    SINCE,
    UNTIL,
    asked_key,
    chosen_time,
    next_offset,
    page_of,
    page_within,
    whole_number,
)
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import InvalidInput, UnknownExperiment
from socratic_bench.ports.clock import Clock
from socratic_bench.results.experiment_choice import find_experiment, matching
from socratic_bench.results.experiment_status import (
    ExperimentStatus,
    ModelProgress,
    StatusStore,
    experiment_status,
    experiment_statuses,
    model_progress,
    model_troubles,
    stop_told,
    waiting_in_batches,
)
from socratic_bench.results.pending import PendingRun, PendingStore, pending_runs

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
    stop_when: str | None
    """How far the intervals reach, and what repeats can do for them; null unless the plan lets
    intervals stop repeats."""

    batches: tuple[str, ...]
    """A sentence for each provider's batch that calls wait in, oldest first."""

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


def experiment_endpoints(store: DetailStore, read: Read) -> list[ApiEndpoint]:
    """Return the endpoints that read one experiment."""

    async def show_experiment(request: Request) -> Response:
        return ready_response(request, await read(named_in(request)))

    async def list_pending_runs(request: Request) -> Response:
        limit = whole_number(request, "limit", default=_PENDING, low=1, high=_PENDING_LIMIT)
        body = to_json(await _pending(store, named_in(request), limit))
        return ready_response(request, make_ready(body, "application/json"))

    return [
        ApiEndpoint(
            PATH,
            show_experiment,
            "One experiment: progress by model, failures with reasons, cost so far, state",
            ExperimentDetail,
            description="The id may be the start of an id, an occasion or a name that only one "
            "experiment has.",
            problems=PROBLEMS,
        ),
        ApiEndpoint(
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
        repeats=manifest.due_repeats,
        stop_when=await stop_told(store, experiment, status.done),
        batches=tuple(await waiting_in_batches(store, experiment)),
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


def listing_endpoints(store: StatusStore, ready: ReadyBytes, clock: Clock) -> list[ApiEndpoint]:
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
        ApiEndpoint(
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


def event_endpoints(read: Read, streams: Streams, capabilities: Capabilities) -> list[ApiEndpoint]:
    """Return the endpoint of the stream."""

    async def follow_experiment(request: Request) -> Response:
        if not capabilities.may_stream:
            raise Conflict(
                "this API cannot stream: poll /api/experiments/{experiment_id} with If-None-Match"
            )
        wanted = named_in(request)
        await read(wanted)  # an unknown experiment is a problem, not a stream
        return streams.response(partial(read, wanted), request.headers.get("last-event-id"))

    return [
        ApiEndpoint(
            f"{PATH}/events",
            follow_experiment,
            "The detail of an experiment at each change, as server-sent events",
            MEDIA_TYPE,
            description="Each event `experiment` holds what `/api/experiments/{experiment_id}` "
            "answers, and has its ETag as id. `away` says that the store does not answer, `gone` "
            "that the experiment was deleted; `heartbeat` comes after 15 silent seconds. Where an "
            "answer has to be whole, as behind a function, poll with If-None-Match instead.",
            problems={
                **PROBLEMS,
                409: "This API cannot stream",
                503: f"The store does not answer, or {MOST_STREAMS} streams are open",
            },
        )
    ]
