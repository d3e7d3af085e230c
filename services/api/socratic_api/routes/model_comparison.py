"""`/api/model-comparison`: the leaderboard."""

from __future__ import annotations

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.ready_bytes import ReadyBytes, ready_response
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.store import Store
from socratic_bench.reporting.comparison import ModelComparison, model_comparison

_ID_LIMIT = 200
_EXPERIMENT = QueryParameter(
    "experiment",
    "The id of one experiment, or `all` for every one together; "
    "without it, each model's newest experiment.",
    {"type": "string", "maxLength": _ID_LIMIT},
)


def endpoints(store: Store, ready: ReadyBytes) -> list[Endpoint]:
    """The leaderboard, encoded once for each revision of the store."""

    async def compare_models(request: Request) -> Response:
        experiment = request.query_params.get("experiment") or None
        if experiment is not None and len(experiment) > _ID_LIMIT:
            raise InvalidInput(f"experiment: longer than {_ID_LIMIT} characters; no id is")

        async def encode() -> bytes:
            return to_json(await model_comparison(store, experiment))

        body = await ready.get(f"model-comparison {experiment or ''}", encode)
        return ready_response(request, body)

    return [
        Endpoint(
            "/api/model-comparison",
            compare_models,
            "All models, best first, with intervals, coverage, dimensions and vectors",
            ModelComparison,
            parameters=(_EXPERIMENT,),
            problems={
                404: "There is no such experiment",
                422: "The experiment's id is too long",
                503: "The store does not answer",
            },
        )
    ]
