"""`socratic-bench serve`: serves the API and the dashboard."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import click

from socratic_api.entrypoints.container import serve as serve_api
from socratic_bench.adapters.clock import SystemClock
from socratic_cli.options.store import (
    broker_option,
    database_file,
    opened_broker,
    prepared_store,
    readable_store,
    store_option,
)
from socratic_cli.scoring_workers import scoring_broker


@click.command()
@store_option
@broker_option
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
def serve(store_url: str, broker_url: str | None, host: str, port: int) -> None:
    """Serve the API and the dashboard, until Ctrl-C.

    With a broker, experiments can be submitted over HTTP and from the page of experiments, and dead
    letters are shown there.

    Other machines need a key: `--host 0.0.0.0` requires SOCRATIC_API_KEYS, and clients that write
    or score send one of the keys.
    """
    asyncio.run(_serve(store_url, broker_url, host, port))


async def _serve(store_url: str, broker_url: str | None, host: str, port: int) -> None:
    def ready(address: str) -> None:
        shown = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        click.echo(f"Dashboard: {shown}/   API: {shown}/openapi.json   (Ctrl-C stops)", err=True)

    file = database_file(store_url)
    is_new = file is not None and not file.exists()
    async with AsyncExitStack() as opened:
        opening = prepared_store(store_url) if is_new else readable_store(store_url)
        store = await opened.enter_async_context(opening)
        services = own = None
        if broker_url:
            services = await opened.enter_async_context(opened_broker(broker_url))
        else:
            own = await opened.enter_async_context(scoring_broker(store, SystemClock()))
        await serve_api(
            store, host=host, port=port, on_ready=ready, broker=services, scoring_broker=own
        )
