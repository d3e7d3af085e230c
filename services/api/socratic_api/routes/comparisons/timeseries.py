"""`/api/timeseries`: each model's score over time."""

from __future__ import annotations

from functools import partial

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.routes.experiment_choice import PROFILE, asked_key, chosen_profile
from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.timeline.timeseries import TimelineStore, Timeseries, timeseries

KEY = "timeseries "
"""The cache key of all models; a model's id follows, if any."""

_ID_LIMIT = 300
_MODEL = QueryParameter("model", "The id of one model.", {"type": "string", "maxLength": _ID_LIMIT})


def endpoints(store: TimelineStore, ready: ReadyBytes) -> list[Endpoint]:
    """Return the endpoint, encoded once for each revision of the store."""

    async def show_timeseries(request: Request) -> Response:
        model = request.query_params.get("model") or None
        if model is not None and (len(model) > _ID_LIMIT or not model.isprintable()):
            raise InvalidInput("model: longer than any id, or with characters that no id has")

        profile = chosen_profile(request)

        async def encode() -> bytes:
            return to_json(await timeseries(store, model, profile))

        return ready_response(request, await ready.get(KEY + asked_key(model, profile), encode))

    return [
        Endpoint(
            "/api/timeseries",
            show_timeseries,
            "Each model's score over time, with changes and trends: one point per experiment",
            Timeseries,
            parameters=(_MODEL, PROFILE),
            problems={
                422: "No experiment has the model, or a score by the profile",
                503: "The store does not answer",
            },
            ready=partial(ready.fresh, KEY),
        )
    ]
