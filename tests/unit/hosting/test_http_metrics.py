"""The metrics count requests by the route that answered them, never by their address."""

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from socratic_bench.hosting.metrics import CountRequests, HttpMetrics, Metrics


async def test_requests_are_counted_by_route_and_status():
    async def item(request):
        if request.path_params["name"] == "bug":
            raise ZeroDivisionError
        return Response(status_code=201 if request.path_params["name"] == "new" else 200)

    metrics = Metrics()
    app = Starlette(
        routes=[Route("/items/{name}", item)],
        middleware=[Middleware(CountRequests, metrics=HttpMetrics(metrics))],
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        for path in ("/items/a", "/items/b", "/items/new", "/items/bug", "/nowhere", "/else"):
            await client.get(path)
        await client.post("/items/a")

    text = metrics.text().decode()
    counted = dict(
        line.removeprefix("socratic_http_requests_total").rsplit(" ", 1)
        for line in text.splitlines()
        if line.startswith("socratic_http_requests_total")
    )
    assert counted == {
        '{route="/items/{name}",status="200"}': "2.0",
        '{route="/items/{name}",status="201"}': "1.0",
        '{route="/items/{name}",status="500"}': "1.0",
        '{route="/items/{name}",status="405"}': "1.0",
        '{route="unknown",status="404"}': "2.0",
    }
    assert 'socratic_http_request_seconds_count{route="/items/{name}"} 5.0' in text
