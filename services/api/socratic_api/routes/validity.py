"""`/api/validity`: what the scores are worth, beside people's labels."""

from __future__ import annotations

from functools import cache

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, ReadyBody, make_ready, ready_response
from socratic_api.endpoints import Endpoint
from socratic_bench.reporting.validity.published import published_figures
from socratic_bench.reporting.validity.report import ValidityReport


def endpoints() -> list[Endpoint]:
    """Return the endpoint of the published figures."""

    async def validity(request: Request) -> Response:
        return ready_response(request, _ready())

    return [
        Endpoint(
            "/api/validity",
            validity,
            "What the scores are worth: agreement with people's labels, gaming, losses",
            ValidityReport,
        )
    ]


@cache
def _ready() -> ReadyBody:
    return make_ready(to_json(published_figures()), JSON)
