"""`/api/compare`: two models on the scenarios of both."""

from __future__ import annotations

import json

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.routes.query import (
    EXPERIMENT,
    PROFILE,
    chosen_experiment,
    chosen_profile,
)
from socratic_bench.domain.aggregates.difference import MARGIN
from socratic_bench.errors import InvalidInput
from socratic_bench.results.compare.model_difference import ModelDifference, model_difference
from socratic_bench.results.experiment_choice import ResultStore
from socratic_bench.results.leaderboard.selection import ALL

_ID_LIMIT = 600

_SIDES = tuple(
    QueryParameter(
        name,
        f"The {which} model: `MODEL`, or `MODEL@EXPERIMENT` for two prompts or occasions of one.",
        {"type": "string", "minLength": 1, "maxLength": _ID_LIMIT},
        required=True,
    )
    for name, which in (("a", "first"), ("b", "second"))
)


_MARGIN = QueryParameter(
    "margin",
    "The difference that is too small to matter.",
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": MARGIN},
)


def endpoints(store: ResultStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint, encoded once for each pair and revision of the store."""

    async def compare_two(request: Request) -> Response:
        first, second = (_side(request, each.name) for each in _SIDES)
        experiment = chosen_experiment(request)
        if experiment == ALL:
            raise InvalidInput("experiment: one, and not `all`: each has scenarios of its own")

        margin, profile = _margin(request), chosen_profile(request)

        async def encode() -> bytes:
            return to_json(
                await model_difference(store, first, second, experiment, margin, profile)
            )

        key = json.dumps([first, second, experiment, margin, profile])
        return ready_response(request, await ready.get(f"compare {key}", encode))

    return [
        ApiEndpoint(
            "/api/compare",
            compare_two,
            "Two models on the scenarios of both: differences, and whether chance explains them",
            ModelDifference,
            parameters=(*_SIDES, EXPERIMENT, PROFILE, _MARGIN),
            problems={
                400: "Several experiments could be meant; the detail names them",
                404: "There is no such experiment",
                422: "A model is missing or unknown, the two do not compare, or a wrong margin",
                503: "The store does not answer",
            },
        )
    ]


def _side(request: Request, name: str) -> str:
    side: str | None = request.query_params.get(name)
    if not side:
        raise InvalidInput(f"{name}: is missing; write /api/compare?a=MODEL&b=MODEL")
    if len(side) > _ID_LIMIT or not side.isprintable():
        raise InvalidInput(f"{name}: longer than any id, or with characters that no id has")
    return side


def _margin(request: Request) -> float:
    text: str | None = request.query_params.get("margin")
    if not text:
        return MARGIN
    try:
        return float(text)
    except ValueError:
        raise InvalidInput("margin: must be a number such as 0.05") from None
