"""`socratic-bench verify`: compares every cell with its rows."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.reporting.verification import Difference
from socratic_bench.reporting.verification import verify as verify_experiment
from socratic_cli.options.store import readable_store, store_option

SHOWN = 20
"""The most differences in the report."""


@click.command()
@store_option
def verify(store_url: str) -> None:
    """Recompute every aggregate and compare exactly.

    Exit code 1, with the differences, if a cell disagrees with its stored rows.
    """
    experiments, cells, differences = asyncio.run(_verify(store_url))
    for difference in differences[:SHOWN]:
        click.echo(str(difference))
    if len(differences) > SHOWN:
        click.echo(f"… and {len(differences) - SHOWN} more")
    if differences:
        click.echo(f"{len(differences)} differences in {cells} cells.", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"{cells} cells of {experiments} experiments agree with their rows.", err=True)


async def _verify(store_url: str) -> tuple[int, int, list[Difference]]:
    differences: list[Difference] = []
    async with readable_store(store_url) as store:
        experiments = await store.outlines()
        for experiment in experiments:
            differences += await verify_experiment(store, experiment.experiment_id)
        return len(experiments), len(await store.cells()), differences
