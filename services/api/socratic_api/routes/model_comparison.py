"""`/api/model-comparison`: the leaderboard."""

from __future__ import annotations

from functools import partial

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.endpoints import Endpoint
from socratic_api.ready_bytes import ReadyBytes, ready_response
from socratic_api.routes.experiment_choice import EXPERIMENT, PROBLEMS, chosen_experiment
from socratic_bench.ports.stores.store import Store
from socratic_bench.reporting.comparison import ModelComparison, model_comparison

KEY = "model-comparison "
"""What the leaderboard is called among what is ready; the experiment's id follows, if any."""


def endpoints(store: Store, ready: ReadyBytes) -> list[Endpoint]:
    """The leaderboard, encoded once for each revision of the store."""

    async def compare_models(request: Request) -> Response:
        experiment = chosen_experiment(request)

        async def encode() -> bytes:
            return to_json(await model_comparison(store, experiment))

        body = await ready.get(KEY + (experiment or ""), encode)
        return ready_response(request, body)

    return [
        Endpoint(
            "/api/model-comparison",
            compare_models,
            "All models, best first, with intervals, coverage, dimensions, vectors and costs",
            ModelComparison,
            parameters=(EXPERIMENT,),
            problems=PROBLEMS,
            ready=partial(ready.fresh, KEY),
        )
    ]
