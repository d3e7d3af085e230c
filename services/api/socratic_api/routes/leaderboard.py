"""`/api/model-comparison`: the leaderboard; `/api/cost-analysis`: what each model cost."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, ReadyBytes, ready_response
from socratic_api.answers.streams import MEDIA_TYPE, MOST_STREAMS, Streams, change_told
from socratic_api.capabilities import Capabilities
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.http.problems import Conflict
from socratic_api.routes.query import (
    EXPERIMENT,
    FILTERS,
    PROBLEMS,
    PROFILE,
    Results,
    chosen_results,
)
from socratic_bench.errors import InvalidInput
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.costs import CostAnalysis, cost_analysis
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv

LEADERBOARD_KEY = "model-comparison "
"""The cache key of the leaderboard; what is asked for follows, if anything."""

CSV_KEY = "model-comparison.csv "
CSV: Final = "text/csv; charset=utf-8"
_FILE = (b"content-disposition", b'attachment; filename="socratic-bench.csv"')

FORMAT: Final = QueryParameter(
    "format",
    "`csv`: one row a model, the same bytes as `socratic-bench leaderboard --format csv`.",
    {"type": "string", "enum": ["json", "csv"], "default": "json"},
)


def leaderboard_endpoints(
    store: CostedStore,
    ready: ReadyBytes,
    known: KnownPools,
    streams: Streams,
    capabilities: Capabilities,
) -> list[ApiEndpoint]:
    """Return the endpoints of the leaderboard, encoded once for each revision of the store."""

    async def read(results: Results) -> ReadyBody:
        async def encode() -> bytes:
            return to_json(await model_comparison(store, *results, known))

        return await ready.get(LEADERBOARD_KEY + results.key, encode)

    async def compare_models(request: Request) -> Response:
        results = chosen_results(request)
        if wants_csv(request):
            return await as_csv(request, results)
        return ready_response(request, await read(results))

    async def follow_comparison(request: Request) -> Response:
        if not capabilities.may_stream:
            raise Conflict("this API cannot stream: poll /api/model-comparison with If-None-Match")
        reading = partial(read, chosen_results(request))
        await reading()  # an unknown experiment is a problem, not a stream
        return streams.response(reading, request.headers.get("last-event-id"), change_told)

    async def as_csv(request: Request, results: Results) -> Response:
        async def encode() -> bytes:
            return comparison_csv(await model_comparison(store, *results, known)).encode()

        body = await ready.get(CSV_KEY + results.key, encode, CSV)
        response = ready_response(request, body)
        response.raw_headers.append(_FILE)
        return response

    return [
        ApiEndpoint(
            "/api/model-comparison",
            compare_models,
            "All models, best first, with intervals, coverage, dimensions, vectors and costs",
            ModelComparison,
            also=(CSV,),
            parameters=(EXPERIMENT, PROFILE, *FILTERS, FORMAT),
            problems=PROBLEMS,
            ready=partial(ready.fresh, LEADERBOARD_KEY),
        ),
        ApiEndpoint(
            "/api/model-comparison/events",
            follow_comparison,
            "A server-sent event at each change of what `/api/model-comparison` answers",
            MEDIA_TYPE,
            description="Each event `change` has the ETag of the new answer as its id, and no "
            "data: ask `/api/model-comparison` for it. `away` says that the store does not answer, "
            "`gone` that the experiment was deleted; `heartbeat` comes after 15 silent seconds. "
            "Where an answer has to be whole, as behind a function, poll with If-None-Match.",
            parameters=(EXPERIMENT, PROFILE, *FILTERS),
            problems={
                **PROBLEMS,
                409: "This API cannot stream",
                503: f"The store does not answer, or {MOST_STREAMS} streams are open",
            },
        ),
    ]


def wants_csv(request: Request) -> bool:
    """Whether a request asks for CSV in place of JSON. Raises InvalidInput for another format."""
    wanted = request.query_params.get("format", "json")
    if wanted not in {"json", "csv"}:
        raise InvalidInput(f"format: must be `json` or `csv`, not {wanted!r}")
    return wanted == "csv"


COST_KEY = "cost-analysis "
"""The cache key of the costs; what is asked for follows, if anything."""


def cost_endpoints(store: CostedStore, ready: ReadyBytes, known: KnownPools) -> list[ApiEndpoint]:
    """Return the endpoint of the costs, encoded once for each revision of the store."""

    async def analyse_costs(request: Request) -> Response:
        results = chosen_results(request)

        async def encode() -> bytes:
            return to_json(await cost_analysis(store, *results, known))

        return ready_response(request, await ready.get(COST_KEY + results.key, encode))

    return [
        ApiEndpoint(
            "/api/cost-analysis",
            analyse_costs,
            "What each model took and cost, the most expensive first",
            CostAnalysis,
            description="In USD. Unknown is null and never zero; where `cost_known` is below 1, "
            "the costs beside it are a lower bound. `spending` is that of the experiments as a "
            "whole, as `/api/experiments` has it: paid, possibly paid for failed calls, reused.",
            parameters=(EXPERIMENT, PROFILE, *FILTERS),
            problems=PROBLEMS,
            ready=partial(ready.fresh, COST_KEY),
        )
    ]
