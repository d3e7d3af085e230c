"""The HTTP application of a worker process: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics.process_metrics import CONTENT_TYPE, Metrics


def health_app(readiness: Readiness, metrics: Metrics) -> Starlette:
    """Return an application that serves liveness, readiness and metrics."""

    async def is_alive(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def is_ready(_request: Request) -> Response:
        problem = await readiness.problem()
        if problem is None:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "unavailable", "reason": problem}, status_code=503)

    async def show_metrics(_request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return Starlette(
        routes=[
            Route("/healthz", is_alive),
            Route("/readyz", is_ready),
            Route("/metrics", show_metrics),
        ]
    )
