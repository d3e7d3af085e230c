"""`socratic-bench verify`: compares every cell with its rows, and every row with its plan."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.results.verification import Finding, Outside
from socratic_bench.results.verification import verify as verify_experiment
from socratic_cli.options.store import readable_store, store_option

SHOWN = 20
"""The most findings in the report."""


@click.command()
@store_option
def verify(store_url: str) -> None:
    """Recompute every aggregate and compare exactly.

    Exit code 1, with the findings, if a cell disagrees with its stored rows, or a row is of no
    planned run.
    """
    experiments, cells, findings = asyncio.run(_verify(store_url))
    for finding in findings[:SHOWN]:
        click.echo(str(finding))
    if len(findings) > SHOWN:
        click.echo(f"… and {len(findings) - SHOWN} more")
    if findings:
        outside = sum(isinstance(finding, Outside) for finding in findings)
        told = f"{outside} rows outside the plan, " if outside else ""
        click.echo(f"{told}{len(findings) - outside} differences in {cells} cells.", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"{cells} cells of {experiments} experiments agree with their rows.", err=True)


async def _verify(store_url: str) -> tuple[int, int, list[Finding]]:
    findings: list[Finding] = []
    async with readable_store(store_url) as store:
        experiments = await store.outlines()
        for experiment in experiments:
            findings += await verify_experiment(store, experiment.experiment_id)
        return len(experiments), len(await store.cells()), findings
