"""Where the pieces of the API meet: a store and settings become an application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from socratic_api.problems import HANDLERS
from socratic_api.ready_bytes import ReadyBytes
from socratic_api.routes import dashboard, experiments, health, model_comparison, profiles, score
from socratic_api.routes.openapi import with_openapi
from socratic_api.security_headers import SecurityHeaders
from socratic_api.settings import ApiSettings
from socratic_bench.ports.store import Store


def build_app(store: Store, settings: ApiSettings) -> Starlette:
    """The application. The store is prepared and closed by whoever owns it."""
    timeout = settings.store_timeout
    ready = ReadyBytes(store.revision, settings.freshness_ms / 1000, timeout)
    endpoints = with_openapi(
        [
            *model_comparison.endpoints(store, ready),
            *experiments.endpoints(store, ready),
            *score.endpoints(),
            *profiles.endpoints(),
            *health.endpoints(store, timeout),
            *dashboard.endpoints(),
        ]
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await ready.close()

    return Starlette(
        routes=[endpoint.route() for endpoint in endpoints],
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
