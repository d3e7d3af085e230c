"""`socratic-bench export`: writes the responses of an experiment for other programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import IO

import click

from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.transcripts.records import FORMATS, records
from socratic_cli.display.terminal import counted, say
from socratic_cli.options.output_file import whole_file
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option


@click.command()
@click.argument("experiment")
@store_option
@profile_option
@click.option(
    "--format", "output", type=click.Choice(list(FORMATS)), default="jsonl", show_default=True
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE, which appears once it is whole. Without it: standard output.",
)
def export(
    experiment: str, store_url: str, profile: str | None, output: str, out: Path | None
) -> None:
    """Write the scored responses of an experiment to a file.

    The formats are JSON lines and CSV. EXPERIMENT is an ID, its start, an occasion or a name. A
    failed run is a record without a score.
    """
    if out is None:
        with click.open_file("-", "w", encoding="utf-8") as standard_output:
            asyncio.run(_write(store_url, experiment, profile, output, standard_output))
        return
    with whole_file(out) as file:
        written = asyncio.run(_write(store_url, experiment, profile, output, file))
    say(f"Wrote {counted(written, 'record')} to {out}.")


async def _write(
    store_url: str, wanted: str, profile: str | None, output: str, file: IO[str]
) -> int:
    """Write the records one by one, and return how many they are."""
    written = 0
    async with readable_store(store_url) as store:
        found = records(store, await find_experiment(store, wanted), profile)
        async for line in FORMATS[output](found):
            file.write(line)
            written += 1
    return written
