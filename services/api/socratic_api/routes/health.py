"""`/healthz`, `/readyz` and `/metrics`: liveness, readiness and figures of the process."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON
from socratic_api.endpoints import Endpoint
from socratic_api.http.problems import RETRY_SECONDS, problem
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics.process_metrics import CONTENT_TYPE, Metrics


class Health(BaseModel):
    """All is well; anything else is a problem instead."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


_OK = to_json(Health())


def endpoints(readiness: Readiness, metrics: Metrics) -> list[Endpoint]:
    """Return the endpoints of liveness, readiness and metrics."""

    async def is_alive(_request: Request) -> Response:
        return Response(_OK, media_type=JSON)

    async def is_ready(_request: Request) -> Response:
        reason = await readiness.problem()
        if reason is not None:
            return problem(503, reason, {"Retry-After": RETRY_SECONDS})
        return Response(_OK, media_type=JSON)

    turn = asyncio.Lock()  # milliseconds: concurrent ones take turns with other requests

    async def show_metrics(_request: Request) -> Response:
        async with turn:
            await asyncio.sleep(0)
            return Response(metrics.text(), media_type=CONTENT_TYPE)

    return [
        Endpoint("/healthz", is_alive, "The process answers", Health),
        Endpoint(
            "/readyz",
            is_ready,
            "The service has started and the store answers",
            Health,
            problems={503: "It is starting or draining, or the store does not answer"},
        ),
        Endpoint(
            "/metrics", show_metrics, "What was answered, as Prometheus reads it", "text/plain"
        ),
    ]
