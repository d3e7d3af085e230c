"""The API: its answers over a thousand and a million runs, and its ranking beside a bare route.

    python -m tests.benchmarks.api [throughput|requests] [FOLDER|postgresql]

`throughput` compares the requests a second of /api/model-comparison with those of a bare route that
returns the same bytes. Each is served by uvicorn on the loopback interface in a process of its own,
in turns, to the same client: the ratio says what the service adds to sending bytes.

`requests` takes the time of each request that the pages make, in turns over both stores, right
after their stores changed. A `FOLDER` keeps SQLite's stores for the next time.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from urllib.parse import quote, urlsplit

import httpx
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from tests.benchmarks.filled_stores import (
    PENDING,
    REST_AFTER,
    SMALL,
    FilledStore,
    filled_stores,
    served,
)

ROUNDS = 5
CONNECTIONS = 16
ROUND_SECONDS = 1.0
RANKING = "/api/model-comparison"
BUDGET = 0.8
_DEADLINE = 60.0


async def throughput(place: str) -> None:
    """Print the rate of the ranking and of the bare route, and their ratio."""
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    async with filled_stores(place, [SMALL]) as [store], AsyncExitStack() as stack:
        addresses = [
            await stack.enter_async_context(served(store.url, build))
            for build in (_build_api, _build_bare)
        ]
        for _ in range(ROUNDS):
            for taken, address in zip(rates.values(), addresses, strict=True):
                taken.append(await _rate(address))
    ours, bare = map(statistics.median, rates.values())
    print(f"{RANKING}, {SMALL.models} models: {ours:,.0f} requests/s")
    print(f"a bare route with the same bytes: {bare:,.0f} requests/s")
    print(f"ratio: {ours / bare:.2f} (budget: at least {BUDGET})", flush=True)


async def _build_api(store: Store) -> Starlette:
    return build_app(store, ApiSettings())


async def _build_bare(store: Store) -> Starlette:
    body = to_json(await model_comparison(store))

    async def answer(_request: Request) -> Response:
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route(RANKING, answer)])


async def _rate(address: str) -> float:
    until = time.perf_counter() + ROUND_SECONDS
    counts = await asyncio.gather(*(_ask(address, until) for _ in range(CONNECTIONS)))
    return sum(counts) / ROUND_SECONDS


async def _ask(address: str, until: float) -> int:
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=2**20)
    request = f"GET {RANKING} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    count = 0
    while time.perf_counter() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        count += 1
    writer.close()
    await writer.wait_closed()
    return count


async def requests(place: str) -> None:
    """Print the median milliseconds of each request, one column for each store."""
    async with filled_stores(place) as stores, httpx.AsyncClient(timeout=_DEADLINE) as client:
        print_heads("requests, milliseconds", stores)
        for asked in zip(
            *(requests_of(store.experiments).items() for store in stores), strict=True
        ):
            taken: list[list[float]] = [[] for _ in stores]
            for _ in range(ROUNDS + 1):  # the first opens connections and reads the plans
                for store, (_, path), times in zip(stores, asked, taken, strict=True):
                    times.append(await _seconds(client, store, path))
            print_medians(asked[0][0], taken)


async def _seconds(client: httpx.AsyncClient, store: FilledStore, path: str) -> float:
    await store.change()
    begun = time.perf_counter()
    answer = await client.get(store.address + path)
    taken = time.perf_counter() - begun
    if answer.status_code == 503:  # the store took longer than the API waits for it
        return math.inf
    answer.raise_for_status()
    await asyncio.sleep(REST_AFTER * taken)
    return taken


def requests_of(experiments: Sequence[Experiment]) -> Mapping[str, str]:
    """Return the paths of the requests of all pages, by what they ask for.

    Lists have a request for their first, their middle and their last part.
    """
    first, last = experiments[0], experiments[-1]
    manifest = first.manifest
    a, b = (quote(model.id, safe="") for model in manifest.models[:2])
    scenario = manifest.scenarios[0]
    runs = manifest.planned_runs
    one = first.run(manifest.models[0].id, scenario, max(1, manifest.repeats - 1)).run_id
    id_ = first.experiment_id
    results = f"/api/detailed-results?experiment={id_}"
    of_cell = f"{results}&model={a}&scenario={scenario.id}"
    return {
        "the ranking": RANKING,
        "the ranking of one experiment": f"{RANKING}?experiment={id_}",
        "the ranking of all experiments": f"{RANKING}?experiment=all",
        "the ranking as CSV": f"{RANKING}?format=csv",
        "the ranking in short": "/api/latest-rankings",
        "a week": f"/weekly?week={last.occasion}",
        "costs": "/api/cost-analysis",
        "all models over time": "/api/timeseries",
        "one model over time": f"/api/timeseries?model={a}",
        "the heat map": "/api/scenario-scores",
        "the scenarios": "/api/scenarios",
        "two models": f"/api/compare?a={a}&b={b}",
        "experiments, first page": "/api/experiments",
        "experiments, last page": f"/api/experiments?offset={max(0, len(experiments) - 100)}",
        "one experiment": f"/api/experiments/{id_}",
        "pending runs": f"/api/experiments/{id_}/pending?limit={PENDING}",
        "runs, first page": results,
        "runs, middle page": f"{results}&offset={runs // 2}",
        "runs, last page": f"{results}&offset={runs - 50}",
        "runs of a cell, first page": of_cell,
        "runs of a cell, last page": f"{of_cell}&offset={max(0, manifest.repeats - 50)}",
        "one run": f"/runs/{one}/summary",
        "turns of a run": f"/runs/{one}/turns",
    }


def print_heads(title: str, stores: Sequence[FilledStore]) -> None:
    """Print the first line of a table with a column for each store."""
    print(f"{title:34}", *(f"{store.size!s:>32}" for store in stores), flush=True)


def print_medians(name: str, taken: Sequence[Sequence[float]]) -> None:
    """Print the median milliseconds of each store's times in seconds, but for the first one."""
    medians = (statistics.median(times[1:]) * 1000 for times in taken)
    print(f"{name:34}", *(f"{median:32.1f}" for median in medians), flush=True)


MEASUREMENTS = {"throughput": throughput, "requests": requests}


def main(name: str | None = None, place: str | None = None) -> None:
    """Take one measurement, or both."""
    if name not in (None, *MEASUREMENTS):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        for chosen in MEASUREMENTS if name is None else (name,):
            asyncio.run(MEASUREMENTS[chosen](place or folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
