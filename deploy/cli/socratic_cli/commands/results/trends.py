"""`socratic-bench trends`: shows each model's score over time."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.reporting.timeline.timeseries import Timeseries, timeseries
from socratic_cli.display.terminal import standard_output
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option
from socratic_cli.tables.trends import model_trend_table, trends_table


@click.command()
@click.argument("model", required=False)
@store_option
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `/api/timeseries` has it.")
def trends(model: str | None, store_url: str, profile: str | None, *, as_json: bool) -> None:
    """Show each model's score over time, and what changed.

    Each experiment is a point. Points compare only where profile, scenarios, prompt and parameters
    are the same. With MODEL: every point, and before and after each change of its version.
    """
    found = asyncio.run(_load(store_url, model, profile))
    if as_json:
        click.echo(found.model_dump_json())
    elif model is None:
        standard_output().print(trends_table(found))
    else:
        standard_output().print(model_trend_table(found.models[0], found.left_out))


async def _load(store_url: str, model: str | None, profile: str | None) -> Timeseries:
    async with readable_store(store_url) as store:
        return await timeseries(store, model, profile)
