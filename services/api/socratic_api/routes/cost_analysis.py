"""`/api/cost-analysis`: what each model took and cost."""

from __future__ import annotations

from functools import partial

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.routes.experiment_choice import (
    EXPERIMENT,
    FILTERS,
    PROBLEMS,
    PROFILE,
    chosen_results,
)
from socratic_bench.reporting.cost_analysis import CostAnalysis, cost_analysis
from socratic_bench.reporting.known.pools import KnownPools
from socratic_bench.reporting.result_store import ResultStore

KEY = "cost-analysis "
"""The cache key of the costs; what is asked for follows, if anything."""


def endpoints(store: ResultStore, ready: ReadyBytes, known: KnownPools) -> list[Endpoint]:
    """Return the endpoint of the costs, encoded once for each revision of the store."""

    async def analyse_costs(request: Request) -> Response:
        results = chosen_results(request)

        async def encode() -> bytes:
            return to_json(await cost_analysis(store, *results, known))

        return ready_response(request, await ready.get(KEY + results.key, encode))

    return [
        Endpoint(
            "/api/cost-analysis",
            analyse_costs,
            "What each model took and cost, the most expensive first",
            CostAnalysis,
            description="In USD. Unknown is null and never zero; where `cost_known` is below 1, "
            "the costs beside it are what was paid at least. What `/api/experiments` says was "
            "spent includes calls that failed and may have been paid for.",
            parameters=(EXPERIMENT, PROFILE, *FILTERS),
            problems=PROBLEMS,
            ready=partial(ready.fresh, KEY),
        )
    ]
