"""`/api/model-comparison`: the leaderboard, as JSON and as CSV."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, ReadyBytes, ready_response
from socratic_api.answers.streams import MEDIA_TYPE, MOST_STREAMS, Streams, change_told
from socratic_api.control.capabilities import Capabilities
from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.http.problems import Conflict
from socratic_api.routes.experiment_choice import (
    EXPERIMENT,
    FILTERS,
    PROBLEMS,
    PROFILE,
    Results,
    chosen_results,
)
from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.known.pools import KnownPools
from socratic_bench.reporting.leaderboard.comparison import ModelComparison, model_comparison
from socratic_bench.reporting.leaderboard.csv_text import comparison_csv
from socratic_bench.reporting.result_store import ResultStore

KEY = "model-comparison "
"""The cache key of the leaderboard; what is asked for follows, if anything."""

CSV_KEY = "model-comparison.csv "
CSV: Final = "text/csv; charset=utf-8"
_FILE = (b"content-disposition", b'attachment; filename="socratic-bench.csv"')

FORMAT: Final = QueryParameter(
    "format",
    "`csv`: one row a model, the same bytes as `socratic-bench leaderboard --format csv`.",
    {"type": "string", "enum": ["json", "csv"], "default": "json"},
)


def endpoints(
    store: ResultStore,
    ready: ReadyBytes,
    known: KnownPools,
    streams: Streams,
    capabilities: Capabilities,
) -> list[Endpoint]:
    """Return the endpoints of the leaderboard, encoded once for each revision of the store."""

    async def read(results: Results) -> ReadyBody:
        async def encode() -> bytes:
            return to_json(await model_comparison(store, *results, known))

        return await ready.get(KEY + results.key, encode)

    async def compare_models(request: Request) -> Response:
        results = chosen_results(request)
        if _wants_csv(request):
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
        Endpoint(
            "/api/model-comparison",
            compare_models,
            "All models, best first, with intervals, coverage, dimensions, vectors and costs",
            ModelComparison,
            also=(CSV,),
            parameters=(EXPERIMENT, PROFILE, *FILTERS, FORMAT),
            problems=PROBLEMS,
            ready=partial(ready.fresh, KEY),
        ),
        Endpoint(
            "/api/model-comparison/events",
            follow_comparison,
            "A server-sent event at each change of what `/api/model-comparison` answers",
            MEDIA_TYPE,
            description="Each event `change` has the ETag of the new answer as its id, and no "
            "data: ask `/api/model-comparison` for it. `away` says that the store does not answer, "
            "`gone` that the experiment was deleted. A comment comes every 15 seconds. Where an "
            "answer has to be whole, as behind a function, poll with If-None-Match instead.",
            parameters=(EXPERIMENT, PROFILE, *FILTERS),
            problems={
                **PROBLEMS,
                409: "This API cannot stream",
                503: f"The store does not answer, or {MOST_STREAMS} streams are open",
            },
        ),
    ]


def _wants_csv(request: Request) -> bool:
    wanted = request.query_params.get("format", "json")
    if wanted not in {"json", "csv"}:
        raise InvalidInput(f"format: must be `json` or `csv`, not {wanted!r}")
    return wanted == "csv"
