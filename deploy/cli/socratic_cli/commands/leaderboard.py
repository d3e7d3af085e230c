"""`socratic-bench leaderboard`: shows the models, best first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import click

from socratic_bench.results.experiment_status import why_unscored
from socratic_bench.results.filters import Filters
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_bench.results.leaderboard.text_formats import (
    comparison_csv,
    comparison_latex,
    comparison_markdown,
)
from socratic_bench.scoring.profile import SAME_RULER
from socratic_cli.display.leaderboard import comparison_table, profiles_table
from socratic_cli.display.terminal import say, standard_output
from socratic_cli.options.results import dimension_option, models_option, time_options
from socratic_cli.options.store import readable_store, store_option

TEXTS: Final[Mapping[str, Callable[[ModelComparison, Sequence[str]], str]]] = {
    "markdown": comparison_markdown,
    "latex": comparison_latex,
}


@click.command()
@store_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv", *TEXTS]),
    default="table",
    show_default=True,
)
@click.option(
    "--columns",
    metavar="NAMES",
    default="",
    help="The columns of a LaTeX or Markdown table by their headings: rank,overall,coverage. "
    "Without it: all.",
)
@click.option("--detail", is_flag=True, help="Show every dimension and vector of each model.")
@click.option(
    "--experiment",
    metavar="ID",
    help="One experiment (an ID, its start, an occasion or a name), or `all`: a row for each "
    "model and set of conditions. Without it: the pinned experiments, or else the newest complete "
    "one that is no pilot, with others under its conditions.",
)
@click.option(
    "--profile",
    "profiles",
    metavar="NAME",
    multiple=True,
    help="The profile to read the scores by. Without it: the experiment's own. Given twice, both "
    "stand side by side.",
)
@click.option(
    "--length",
    type=click.Choice(["provider", "same-ruler"]),
    default="provider",
    show_default=True,
    help="same-ruler: by words and marks in place of providers' tokens, as the profile "
    f"{SAME_RULER}; `rescore --profile` reads earlier experiments by it.",
)
@models_option
@dimension_option
@time_options
def leaderboard(
    *,
    store_url: str,
    output: str,
    columns: str,
    detail: bool,
    experiment: str | None,
    profiles: tuple[str, ...],
    length: str,
    models: tuple[str, ...],
    dimension: str | None,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Show the models, best first, with intervals and coverage."""
    if len(profiles) > 1 and (output not in {"table", "json"} or detail):
        raise click.UsageError("several --profile stand side by side in a table or in JSON alone")
    headings = [each.strip() for each in columns.split(",") if each.strip()]
    if headings and output not in TEXTS:
        raise click.UsageError("--columns is for --format latex or markdown")
    if length == "same-ruler":
        if profiles:
            raise click.UsageError(f"--length {length} is the profile {SAME_RULER}: name one")
        profiles = (SAME_RULER,)
    filters = Filters(tuple(sorted({*models})), dimension, since, until)
    found = asyncio.run(_load(store_url, experiment, profiles or (None,), filters))
    if len(found) == 1:
        [(comparison, reasons)] = found
        show_comparison(comparison, reasons, output=output, detail=detail, headings=headings)
    elif output == "json":
        click.echo(json.dumps([each.model_dump(mode="json") for each, _ in found]))
    else:
        console = standard_output()
        console.print(profiles_table([each for each, _ in found], width=console.width))


async def _load(
    store_url: str, experiment: str | None, profiles: Sequence[str | None], filters: Filters
) -> list[tuple[ModelComparison, Mapping[str, str]]]:
    async with readable_store(store_url) as store:
        found = [await model_comparison(store, experiment, each, filters) for each in profiles]
        return [(each, await why_unscored(store, each)) for each in found]


def show_comparison(
    comparison: ModelComparison,
    reasons: Mapping[str, str],
    *,
    output: str,
    detail: bool,
    headings: Sequence[str] = (),
) -> None:
    """Print a leaderboard on standard output; `reasons` explains missing scores.

    Raises InvalidInput for an unknown heading.
    """
    if output == "json":
        click.echo(comparison.model_dump_json())
    elif output == "csv":
        click.echo(comparison_csv(comparison), nl=False)
    elif written := TEXTS.get(output):
        click.echo(written(comparison, headings), nl=False)
    elif comparison.models:
        console = standard_output()
        console.print(
            comparison_table(comparison, detail=detail, width=console.width, reasons=reasons)
        )
    elif comparison.filtered is not None:
        say(comparison.filtered.told)
    else:
        say("There are no results yet: socratic-bench run CONFIG")
