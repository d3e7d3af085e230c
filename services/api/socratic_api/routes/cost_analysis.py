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
    PROBLEMS,
    PROFILE,
    asked_key,
    chosen_experiment,
    chosen_profile,
)
from socratic_bench.reporting.cost_analysis import CostAnalysis, cost_analysis
from socratic_bench.reporting.result_store import ResultStore

KEY = "cost-analysis "
"""The cache key of the costs; the experiment's id and the profile follow, if any."""


def endpoints(store: ResultStore, ready: ReadyBytes) -> list[Endpoint]:
    """Return the endpoint of the costs, encoded once for each revision of the store."""

    async def analyse_costs(request: Request) -> Response:
        experiment, profile = chosen_experiment(request), chosen_profile(request)

        async def encode() -> bytes:
            return to_json(await cost_analysis(store, experiment, profile))

        body = await ready.get(KEY + asked_key(experiment, profile), encode)
        return ready_response(request, body)

    return [
        Endpoint(
            "/api/cost-analysis",
            analyse_costs,
            "What each model took and cost, the most expensive first",
            CostAnalysis,
            description="In USD. Unknown is null and never zero; where `cost_known` is below 1, "
            "the costs beside it are what was paid at least. What `/api/experiments` says was "
            "spent includes calls that failed and may have been paid for.",
            parameters=(EXPERIMENT, PROFILE),
            problems=PROBLEMS,
            ready=partial(ready.fresh, KEY),
        )
    ]
