"""`/api/timeseries`: each model's score over time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.routes.experiment_choice import (
    DIMENSION,
    PROFILE,
    SINCE,
    UNTIL,
    asked_key,
    chosen_name,
    chosen_profile,
    chosen_time,
)
from socratic_api.routes.runs.detailed_results import MODEL
from socratic_bench.reporting.known.scores import KnownScores
from socratic_bench.reporting.timeline.timeseries import TimelineStore, Timeseries, timeseries

KEY = "timeseries "
"""The cache key of all models; what is asked for follows, if anything."""


def endpoints(store: TimelineStore, ready: ReadyBytes) -> list[Endpoint]:
    """Return the endpoint, encoded once for each revision of the store."""
    known = KnownScores()

    async def show_timeseries(request: Request) -> Response:
        model, profile = chosen_name(request, "model"), chosen_profile(request)
        filters = replace(chosen_time(request), dimension=chosen_name(request, "dimension"))

        async def encode() -> bytes:
            return to_json(await timeseries(store, model, profile, filters, known))

        key = KEY + asked_key(model, profile, *filters.key)
        return ready_response(request, await ready.get(key, encode))

    return [
        Endpoint(
            "/api/timeseries",
            show_timeseries,
            "Each model's score over time, with changes and trends: one point per experiment",
            Timeseries,
            parameters=(MODEL, PROFILE, DIMENSION, SINCE, UNTIL),
            problems={
                422: "A parameter is no id, name or time, or names what no experiment has",
                503: "The store does not answer",
            },
            ready=partial(ready.fresh, KEY),
        )
    ]
