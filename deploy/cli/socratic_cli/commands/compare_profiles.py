"""`socratic-bench compare-profiles`: how far two profiles agree on the same responses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.research.agreement import ProfileAgreement, profile_agreement
from socratic_bench.research.agreement_page import (
    READING,
    agreement_page,
    cost_sentences,
    limits_text,
    ranks_text,
)
from socratic_bench.results.formats import MISSING, figure, signed
from socratic_cli.display.fitting import TableColumn, fitted_table
from socratic_cli.display.terminal import counted, name_of, say, standard_output
from socratic_cli.options.results import whole_file
from socratic_cli.options.store import readable_store, store_option


def agreement_table(agreement: ProfileAgreement, *, width: int) -> RenderableType:
    """Make the tables: each figure that both profiles have, and the ranks of the models."""
    first, second = name_of(agreement.first), name_of(agreement.second)
    figures = fitted_table(
        [
            TableColumn("figure", "left", is_name=True),
            TableColumn("responses", drop=0),
            TableColumn(first),
            TableColumn(second),
            TableColumn("Spearman"),
            TableColumn("concordance", drop=2),
            TableColumn("kappa at 0.50", drop=3),
            TableColumn("difference"),
            TableColumn("95 % limits", drop=1),
        ],
        [
            [
                Text(name_of(each.name)),
                Text(f"{each.pairs:,}"),
                Text(figure(each.first_mean)),
                Text(figure(each.second_mean)),
                Text(figure(each.spearman)),
                Text(figure(each.concordance)),
                Text(figure(each.kappa)),
                Text(MISSING if each.difference is None else signed(each.difference.mean)),
                Text(limits_text(each.difference)),
            ]
            for each in agreement.figures
        ],
        width=width,
    )
    ranks = fitted_table(
        [
            TableColumn("model", "left", is_name=True),
            TableColumn(f"rank, {first}"),
            TableColumn(f"rank, {second}"),
            TableColumn("changes"),
        ],
        [
            [
                Text(name_of(each.model_name)),
                Text(ranks_text(each.first_rank, each.first_ranks)),
                Text(ranks_text(each.second_rank, each.second_ranks)),
                Text("yes" if each.changes else "no"),
            ]
            for each in agreement.models
        ],
        width=width,
    )
    alone = (
        f"{counted(agreement.only_first, 'response')} have a score by {first} alone, "
        f"{agreement.only_second} by {second} alone."
    )
    left_out = [alone] if agreement.only_first or agreement.only_second else []
    lines = [*figures.note("see --format json"), *left_out, *cost_sentences(agreement), *READING]
    return Group(
        figures.table, Text(), ranks.table, Text(), *(Text(line, style="dim") for line in lines)
    )


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
