"""Whether pages and queries cost the same at a thousand and at a million runs.

    python -m tests.benchmarks.scale [sqlite|postgresql] [FOLDER]

It fills two stores, serves the API over both, and asks both in turns, right after their stores
changed. At last it compares the ranking with a bare route that sends the same bytes, over each. A
`FOLDER` keeps SQLite's stores for the next time.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack

from tests.benchmarks import api
from tests.benchmarks.scale import endpoints, pages
from tests.benchmarks.scale.plans import BIG, SMALL, Size
from tests.benchmarks.scale.stores import FilledStore, served
from tests.servers import postgresql

SIZES = (SMALL, BIG)


async def measure(kind: str, folder: str) -> None:
    """Print the tables."""
    async with AsyncExitStack() as stack:
        stores: list[FilledStore] = []
        for size in SIZES:
            url = await _url(stack, kind, folder, size)
            stores.append(await stack.enter_async_context(served(url, size)))
        _print(f"{kind}, requests, milliseconds", stores, await endpoints.times_of(stores))
        _print(f"{kind}, pages, milliseconds", stores, await pages.times_of(stores))
        for store in stores:
            ours, bare = await api.measure(store.url)
            print(f"{store.size}: {api.PATH} {ours:,.0f} requests/s, {ours / bare:.2f} x")


async def _url(stack: AsyncExitStack, kind: str, folder: str, size: Size) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/{size.runs}-runs.db"
    return await stack.enter_async_context(postgresql.new_database())


def _print(title: str, stores: list[FilledStore], table: dict[str, list[float]]) -> None:
    heads = [str(store.size) for store in stores]
    print(f"{title:34}", *(f"{head:>32}" for head in heads))
    for name, times in table.items():
        print(f"{name:34}", *(f"{seconds * 1000:32.1f}" for seconds in times))


def main(kind: str = "sqlite", folder: str | None = None) -> None:
    """Measure over SQLite or PostgreSQL."""
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(measure(kind, folder or made))


if __name__ == "__main__":
    main(*sys.argv[1:])
