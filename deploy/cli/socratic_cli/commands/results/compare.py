"""`socratic-bench compare`: compares two models on the scenarios of both."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.domain.aggregates.equivalence import MARGIN
from socratic_bench.reporting.difference.model_difference import ModelDifference, model_difference
from socratic_cli.display.terminal import standard_output
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option
from socratic_cli.tables.difference import difference_table


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@store_option
@click.option(
    "--experiment",
    metavar="ID",
    help="The experiment of both. Without it: the newest one that has both models.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=MARGIN,
    show_default=True,
    help="The difference that is too small to matter.",
)
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every scenario.")
def compare(
    first: str,
    second: str,
    store_url: str,
    experiment: str | None,
    margin: float,
    profile: str | None,
    *,
    as_json: bool,
) -> None:
    """Compare two models on the scenarios of both.

    A and B are MODEL or MODEL@EXPERIMENT: `compare m@exp-1 m@exp-2` compares two prompts, or two
    occasions, of one model.
    """
    difference = asyncio.run(_load(store_url, first, second, experiment, margin, profile))
    if as_json:
        click.echo(difference.model_dump_json())
    else:
        standard_output().print(difference_table(difference))


async def _load(
    store_url: str,
    first: str,
    second: str,
    experiment: str | None,
    margin: float,
    profile: str | None,
) -> ModelDifference:
    async with readable_store(store_url) as store:
        return await model_difference(store, first, second, experiment, margin, profile)
