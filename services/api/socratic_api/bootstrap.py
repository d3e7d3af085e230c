"""Wires the API: a store and settings become an application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from socratic_api.answers.quick_answers import QuickAnswers
from socratic_api.answers.ready_bytes import ReadyBytes
from socratic_api.answers.streams import Streams
from socratic_api.control.capabilities import Capabilities
from socratic_api.control.deletions import Deletions
from socratic_api.control.submissions import Submissions
from socratic_api.http.access import Access, CheckAccess
from socratic_api.http.cross_origin import cross_origin
from socratic_api.http.problems import HANDLERS
from socratic_api.http.security_headers import SecurityHeaders
from socratic_api.routes import (
    api_capabilities,
    cost_analysis,
    dashboard,
    health,
    model_comparison,
    profiles,
    score,
    validity,
)
from socratic_api.routes.comparisons import (
    compare,
    interval,
    rankings,
    scenario_scores,
    scenarios,
    timeseries,
)
from socratic_api.routes.experiments import (
    changes,
    dead_letters,
    events,
    listing,
    one_experiment,
    rescoring,
    submission,
)
from socratic_api.routes.openapi import with_openapi
from socratic_api.routes.runs import detailed_results, export, one_run
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics.http_metrics import CountRequests, HttpMetrics
from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.store import Store
from socratic_bench.reporting.known.pools import KnownPools

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
    lasting = {model_comparison.KEY, cost_analysis.KEY}
    capabilities, streams = capabilities or Capabilities(), streams or Streams()
    outlives = capabilities.outlives_answers
    ready = ReadyBytes(store.revision, freshness, timeout, lasting, outlives)

    async def revision_for_now() -> str:
        return f"{await store.revision()} {clock.now().timestamp() // SPENDING_SECONDS:.0f}"

    ready_for_now = ReadyBytes(revision_for_now, freshness, timeout, {listing.KEY}, outlives)
    submissions = Submissions(store, store.prepare, capabilities, clock)
    deletions = Deletions(store, store.prepare, capabilities)
    detail = one_experiment.detail_reader(store, ready_for_now, clock)
    known = KnownPools()
    endpoints = with_openapi(
        [
            *model_comparison.endpoints(store, ready, known, streams, capabilities),
            *cost_analysis.endpoints(store, ready, known),
            *listing.endpoints(store, ready_for_now, clock),
            *submission.endpoints(submissions),
            *one_experiment.endpoints(store, detail),
            *changes.endpoints(store, store.prepare, capabilities, deletions),
            *rescoring.endpoints(store, capabilities, clock),
            *events.endpoints(detail, streams, capabilities),
            *dead_letters.endpoints(capabilities),
            *timeseries.endpoints(store, ready),
            *compare.endpoints(store, ready),
            *interval.endpoints(store, ready),
            *rankings.endpoints(store, ready, known),
            *scenarios.endpoints(store, ready),
            *scenario_scores.endpoints(store, ready),
            *detailed_results.endpoints(store),
            *export.endpoints(store),
            *one_run.endpoints(store),
            *score.endpoints(),
            *profiles.endpoints(),
            *validity.endpoints(),
            *api_capabilities.endpoints(capabilities, needs_key=bool(settings.api_keys)),
            *health.endpoints(readiness, metrics),
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
            Middleware(CheckAccess, access=Access(settings)),
            Middleware(QuickAnswers, endpoints=endpoints),
        ],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )


def api_readiness(store: Store, settings: ApiSettings) -> Readiness:
    """Return the readiness of the API: it has started, and the store answers."""
    return Readiness({"store": store.ping}, deadline=settings.store_timeout)
