"""`socratic-bench compare-profiles`: how far two profiles agree on the same responses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from socratic_bench.reporting.pages.agreement_page import agreement_page
from socratic_bench.reporting.profiles.agreement import ProfileAgreement, profile_agreement
from socratic_cli.display.terminal import say, standard_output
from socratic_cli.options.output_file import whole_file
from socratic_cli.options.store import readable_store, store_option
from socratic_cli.tables.agreement import agreement_table


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--experiment",
    metavar="ID",
    required=True,
    help="The experiment, scored by both: an ID, its start, an occasion or a name.",
)
@store_option
@click.option(
    "--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with plots to FILE, such as report.html, besides.",
)
def compare_profiles(
    first: str, second: str, experiment: str, store_url: str, output: str, out: Path | None
) -> None:
    """Say how far two profiles agree on the same responses.

    A and B are profiles, such as socratic-v1 and socratic-v2. `rescore` scores an experiment by
    another profile, without a model.
    """
    agreement = asyncio.run(_load(store_url, experiment, first, second))
    if out is not None:
        with whole_file(out) as file:
            file.write(agreement_page(agreement))
        say(f"Wrote {out}.")
    if output == "json":
        click.echo(agreement.model_dump_json())
    else:
        console = standard_output()
        console.print(agreement_table(agreement, width=console.width))


async def _load(store_url: str, experiment: str, first: str, second: str) -> ProfileAgreement:
    async with readable_store(store_url) as store:
        return await profile_agreement(store, experiment, first, second)
