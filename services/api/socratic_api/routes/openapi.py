"""`/openapi.json`: the description of this API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import RootModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, ReadyBody, make_ready, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.openapi import openapi_document


class OpenApiDocument(RootModel[dict[str, Any]]):
    """An OpenAPI 3.1 document."""


def with_openapi(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Return these endpoints and the one that describes them all, itself included.

    The first request makes the description: it takes most of the time of a start, and few ask.
    """

    @cache
    def ready() -> ReadyBody:
        return make_ready(to_json(openapi_document(described)), JSON)

    async def openapi(request: Request) -> Response:
        return ready_response(request, await asyncio.to_thread(ready))

    itself = Endpoint("/openapi.json", openapi, "This description", OpenApiDocument)
    described = [*endpoints, itself]
    return described
