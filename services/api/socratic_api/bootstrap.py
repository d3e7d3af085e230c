"""Wires the API: a store and settings become an application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from socratic_api.answers.ready_bytes import ReadyBytes
from socratic_api.answers.streams import Streams
from socratic_api.background_tasks import Deletions, Submissions
from socratic_api.capabilities import Capabilities
from socratic_api.endpoints import QuickAnswers
from socratic_api.http.access import CheckAccess, RequestAccess
from socratic_api.http.headers import SecurityHeaders, cross_origin
from socratic_api.http.problems import HANDLERS
from socratic_api.openapi import with_openapi
from socratic_api.routes import (
    about,
    changes,
    compare,
    dashboard,
    dead_letters,
    experiments,
    export,
    fidelity,
    interval,
    leaderboard,
    one_run,
    profiles,
    runs,
    scenarios,
    score,
    submission,
    trends,
)
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics import CountRequests, HttpMetrics, Metrics
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.cache.pools import KnownPools

SPENDING_SECONDS = 5
"""The greatest age of shown spending and passed deadlines: neither changes the store's revision."""


def build_app(
    store: Store,
    settings: ApiSettings,
    *,
    readiness: Readiness | None = None,
    metrics: Metrics | None = None,
    clock: Clock | None = None,
    capabilities: Capabilities | None = None,
    streams: Streams | None = None,
) -> Starlette:
    """Return the application.

    The caller prepares and closes the store, and a broker among the `capabilities`. It stops the
    `streams` before it waits for requests to end. Without a `readiness` the API is ready whenever
    the store answers.
    """
    if readiness is None:
        readiness = api_readiness(store, settings)
        readiness.start()
    metrics = metrics or Metrics()
    timeout = settings.store_timeout
    clock = clock or SystemClock()
    freshness = settings.freshness_ms / 1000
    lasting = {leaderboard.LEADERBOARD_KEY, leaderboard.COST_KEY}
    capabilities, streams = capabilities or Capabilities(), streams or Streams()
    outlives = capabilities.outlives_answers
    ready = ReadyBytes(store.revision, freshness, timeout, lasting, outlives)

    async def revision_for_now() -> str:
        return f"{await store.revision()} {clock.now().timestamp() // SPENDING_SECONDS:.0f}"

    ready_for_now = ReadyBytes(revision_for_now, freshness, timeout, {experiments.KEY}, outlives)
    submissions = Submissions(store, store.prepare, capabilities, clock)
    deletions = Deletions(store, store.prepare, capabilities)
    detail = experiments.detail_reader(store, ready_for_now, clock)
    known = KnownPools()
    endpoints = with_openapi(
        [
            *leaderboard.leaderboard_endpoints(store, ready, known, streams, capabilities),
            *leaderboard.cost_endpoints(store, ready, known),
            *experiments.listing_endpoints(store, ready_for_now, clock),
            *submission.endpoints(submissions),
            *experiments.experiment_endpoints(store, detail),
            *changes.change_endpoints(store, store.prepare, capabilities, deletions),
            *changes.rescore_endpoints(store, capabilities, clock),
            *experiments.event_endpoints(detail, streams, capabilities),
            *dead_letters.endpoints(capabilities),
            *trends.timeseries_endpoints(store, ready),
            *compare.endpoints(store, ready),
            *fidelity.endpoints(store, ready),
            *interval.endpoints(store, ready),
            *trends.ranking_endpoints(store, ready, known),
            *scenarios.analysis_endpoints(store, ready),
            *scenarios.score_endpoints(store, ready),
            *runs.endpoints(store),
            *export.endpoints(store),
            *one_run.endpoints(store),
            *score.endpoints(),
            *profiles.profile_endpoints(store),
            *profiles.validity_endpoints(),
            *about.capability_endpoints(capabilities, needs_key=bool(settings.api_keys)),
            *about.health_endpoints(readiness, metrics),
            *dashboard.endpoints(),
        ]
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        streams.stop()
        await submissions.close()
        await deletions.close()
        await ready.close()
        await ready_for_now.close()

    return Starlette(
        routes=[endpoint.route() for endpoint in endpoints],
        middleware=[
            Middleware(CountRequests, metrics=HttpMetrics(metrics)),
            *cross_origin(settings.cors_origins),
            Middleware(SecurityHeaders),
            Middleware(CheckAccess, access=RequestAccess(settings)),
            Middleware(QuickAnswers, endpoints=endpoints),
        ],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )


def api_readiness(store: Store, settings: ApiSettings) -> Readiness:
    """Return the readiness of the API: it has started, and the store answers."""
    return Readiness({"store": store.ping}, deadline=settings.store_timeout)
