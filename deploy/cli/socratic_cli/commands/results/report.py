"""`socratic-bench report`: writes one page about an experiment, to share or cite."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from socratic_bench.reporting.pages.experiment_page import report_page
from socratic_cli.display.terminal import say
from socratic_cli.options.output_file import whole_file
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option


@click.command()
@click.argument("experiment")
@store_option
@profile_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default=Path("report.html"),
    show_default=True,
    help="The file of the page, which appears once it is whole.",
)
def report(experiment: str, store_url: str, profile: str | None, out: Path) -> None:
    """Write one page about an experiment, to share or cite.

    The page is HTML, loads nothing and runs no script. EXPERIMENT is an ID, its start, an occasion
    or a name.
    """
    page = asyncio.run(_page(store_url, experiment, profile))
    with whole_file(out) as file:
        file.write(page)
    say(f"Wrote {out}.")


async def _page(store_url: str, wanted: str, profile: str | None) -> str:
    async with readable_store(store_url) as store:
        return await report_page(store, wanted, profile)
