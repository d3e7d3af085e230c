"""What this API says of itself: `/healthz`, `/readyz`, `/metrics`, and `/api/capabilities`."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, make_ready, ready_response
from socratic_api.capabilities import Capabilities
from socratic_api.endpoints import ApiEndpoint
from socratic_api.http.problems import RETRY_SECONDS, problem
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics import CONTENT_TYPE, Metrics


class ApiCapabilities(BaseModel):
    """The abilities of an API besides reading."""

    model_config = ConfigDict(frozen=True)

    starts: bool
    """Whether it starts experiments and puts dead letters back: it has a broker."""

    changes: bool
    """Whether it pauses, resumes, cancels and deletes experiments."""

    streams: bool
    """Whether it sends events; otherwise clients poll with If-None-Match."""

    needs_key: bool
    """Whether scoring and changes take a key."""


def capability_endpoints(capabilities: Capabilities, *, needs_key: bool) -> list[ApiEndpoint]:
    """Return the endpoint of the abilities, which stay the same while the API runs."""
    abilities = ApiCapabilities(
        starts=capabilities.broker is not None,
        changes=capabilities.may_write,
        streams=capabilities.may_stream,
        needs_key=needs_key,
    )
    ready = make_ready(to_json(abilities), JSON)

    async def show_capabilities(request: Request) -> Response:
        return ready_response(request, ready)

    return [
        ApiEndpoint(
            "/api/capabilities",
            show_capabilities,
            "Whether this API starts and changes experiments, sends events, and takes keys",
            ApiCapabilities,
        )
    ]


class Health(BaseModel):
    """All is well; anything else is a problem instead."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


_OK = to_json(Health())


def health_endpoints(readiness: Readiness, metrics: Metrics) -> list[ApiEndpoint]:
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
        ApiEndpoint("/healthz", is_alive, "The process answers", Health),
        ApiEndpoint(
            "/readyz",
            is_ready,
            "The service has started and the store answers",
            Health,
            problems={503: "It is starting or draining, or the store does not answer"},
        ),
        ApiEndpoint(
            "/metrics", show_metrics, "What was answered, as Prometheus reads it", "text/plain"
        ),
    ]
