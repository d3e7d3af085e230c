"""Requests a second of /api/model-comparison beside a bare route that returns the same bytes.

Both are served by uvicorn on the loopback interface in a process of their own, in turns, to the
same client: the ratio says what the service adds to sending bytes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.process import stop_signals
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from tests.dashboard.seeding import experiment, seed, tutors

MODELS = 25
CONNECTIONS = 16
ROUNDS = 5
ROUND_SECONDS = 1.0
PATH = "/api/model-comparison"
BUDGET = 0.8


def main() -> None:
    """Measure and print the two rates and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/benchmark.db"
        asyncio.run(_fill(url, experiment(tutors(MODELS))))
        ours, bare = asyncio.run(measure(url))
    print(f"{PATH}, {MODELS} models: {ours:,.0f} requests/s")
    print(f"a bare route with the same bytes: {bare:,.0f} requests/s")
    print(f"ratio: {ours / bare:.2f} (budget: at least {BUDGET})")


async def _fill(url: str, planned: Experiment) -> None:
    store = SqlStore.from_url(url)
    await store.prepare()
    await seed(store, planned)
    await store.close()


async def measure(url: str) -> tuple[float, float]:
    """Return the requests a second of the API over a store, and of the bare route."""
    context = multiprocessing.get_context("spawn")
    ports, processes = {}, []
    for name, target in (("ours", _serve_ours), ("bare", _serve_bare)):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=target, args=(url, sending), daemon=True)
        process.start()
        processes.append(process)
        ports[name] = await asyncio.to_thread(receiving.recv)
    try:
        rates: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                rates[name].append(await _rate(port))
        return statistics.median(rates["ours"]), statistics.median(rates["bare"])
    finally:
        for process in processes:
            process.terminate()
            process.join(10)


async def _rate(port: int) -> float:
    until = time.perf_counter() + ROUND_SECONDS
    counts = await asyncio.gather(*(_ask(port, until) for _ in range(CONNECTIONS)))
    return sum(counts) / ROUND_SECONDS


async def _ask(port: int, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    request = f"GET {PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
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


def _serve_ours(url: str, ready: Connection) -> None:
    async def build(store: Store) -> Starlette:
        return build_app(store, ApiSettings())

    asyncio.run(_serve(url, ready, build))


def _serve_bare(url: str, ready: Connection) -> None:
    async def build(store: Store) -> Starlette:
        body = to_json(await model_comparison(store))

        async def answer(_request: Request) -> Response:
            return Response(body, media_type="application/json")

        return Starlette(routes=[Route(PATH, answer)])

    asyncio.run(_serve(url, ready, build))


async def _serve(
    url: str, ready: Connection, build: Callable[[Store], Awaitable[Starlette]]
) -> None:
    store = SqlStore.from_url(url)
    await store.prepare()
    app = await build(store)

    with stop_signals() as stop:
        async with serving(app, "127.0.0.1", 0, shutdown_timeout=1) as address:
            ready.send(int(address.rpartition(":")[2]))
            await stop.wait()
    await store.close()


if __name__ == "__main__":
    main()
