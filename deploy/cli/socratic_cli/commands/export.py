"""`socratic-bench export` and `report`: files about an experiment, for programs and people."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import IO, NamedTuple

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.export.formats import (
    FORMATS,
    PARQUET,
    Written,
    check_format,
    file_pieces,
)
from socratic_bench.results.export.tables import TABLES, open_table
from socratic_bench.results.filters import Condition, written_conditions
from socratic_bench.results.pages import report_page
from socratic_bench.results.transcripts import chosen_runs
from socratic_cli.display.terminal import counted, say
from socratic_cli.options.results import (
    dimension_option,
    models_option,
    profile_option,
    where_option,
    whole_binary_file,
    whole_file,
)
from socratic_cli.options.store import readable_store, store_option


@click.command()
@click.argument("experiment")
@store_option
@profile_option
@models_option
@dimension_option
@where_option
@click.option(
    "--table",
    type=click.Choice(list(TABLES)),
    default="responses",
    show_default=True,
    help="What a record is: a scored response, a scenario, or a turn without scores.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(list(FORMATS)),
    help="Without it: the ending of FILE, else jsonl.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE, which appears once it is whole. Without it: standard output.",
)
def export(
    *,
    experiment: str,
    store_url: str,
    profile: str | None,
    models: tuple[str, ...],
    dimension: str | None,
    where: tuple[str, ...],
    table: str,
    output: str | None,
    out: Path | None,
) -> None:
    """Write the scored responses of an experiment to a file.

    Or its scenarios, or its turns. The formats are JSON lines, CSV and Parquet, which needs
    pyarrow. EXPERIMENT is an ID, its start, an occasion or a name. A failed run is a record
    without a score.
    """
    if output is None:
        ending = "" if out is None else out.suffix.removeprefix(".")
        output = ending if ending in FORMATS else "jsonl"
    check_format(output)
    chosen = Chosen(experiment, profile, models, dimension, written_conditions(where))
    work = (store_url, chosen, table, output)
    if out is None:
        if output == PARQUET and sys.stdout.isatty():
            raise InvalidInput("--format parquet: no text for a terminal; write it with --out FILE")
        asyncio.run(_write(*work, sys.stdout.buffer))
        return
    with whole_binary_file(out) as file:
        written = asyncio.run(_write(*work, file))
    say(f"Wrote {counted(written, 'record')} to {out}.")


class Chosen(NamedTuple):
    """What is exported."""

    experiment: str
    profile: str | None
    models: tuple[str, ...]
    dimension: str | None
    where: tuple[Condition, ...]


async def _write(store_url: str, chosen: Chosen, what: str, output: str, file: IO[bytes]) -> int:
    """Write the records a piece at a time, and return how many they are."""
    written = Written()
    async with readable_store(store_url) as store:
        experiment = await find_experiment(store, chosen.experiment)
        runs = chosen_runs(
            experiment,
            models=chosen.models,
            dimension=chosen.dimension,
            where=chosen.where,
        )
        table = await open_table(what, store, runs, chosen.profile)
        async for piece in file_pieces(table, output, written):
            file.write(piece)
    file.flush()
    return written.records


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
@click.option(
    "--author",
    "authors",
    metavar="NAME",
    multiple=True,
    help="An author of the study, once for each, for its BibTeX entry.",
)
def report(
    experiment: str, store_url: str, profile: str | None, out: Path, authors: tuple[str, ...]
) -> None:
    """Write one page about an experiment, to share or cite.

    The page is HTML, loads nothing and runs no script. EXPERIMENT is an ID, its start, an occasion
    or a name.
    """
    page = asyncio.run(_page(store_url, experiment, profile, authors))
    with whole_file(out) as file:
        file.write(page)
    say(f"Wrote {out}.")


async def _page(store_url: str, wanted: str, profile: str | None, authors: tuple[str, ...]) -> str:
    async with readable_store(store_url) as store:
        return await report_page(store, wanted, profile, authors)
