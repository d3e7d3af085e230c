"""`/healthz` and `/readyz`: whether the process lives, and whether it can do its work."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.endpoints import JSON, Endpoint
from socratic_bench.ports.store import Store


class Health(BaseModel):
    """All is well; anything else is a problem instead."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


_OK = to_json(Health())


def endpoints(store: Store, timeout: float) -> list[Endpoint]:
    """Liveness and readiness; `timeout` in seconds is how long the store may take."""

    async def is_alive(_request: Request) -> Response:
        return Response(_OK, media_type=JSON)

    async def is_ready(_request: Request) -> Response:
        async with asyncio.timeout(timeout):
            await store.revision()
        return Response(_OK, media_type=JSON)

    return [
        Endpoint("/healthz", is_alive, "The process answers", Health),
        Endpoint(
            "/readyz",
            is_ready,
            "The store answers",
            Health,
            problems={503: "The store does not answer"},
        ),
    ]
