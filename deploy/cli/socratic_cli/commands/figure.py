"""`socratic-bench figure`: draws a figure about an experiment, for a paper."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.plugins import require_package
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.filters import Filters
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.trends.timeseries import TimelineStore, timeseries
from socratic_cli.display.terminal import say
from socratic_cli.options.results import models_option, profile_option, whole_binary_file
from socratic_cli.options.store import readable_store, store_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = ("pdf", "svg", "png")
SIDES: Final = 2


@click.command()
@click.argument("experiment")
@click.argument("what", type=click.Choice(["ranking", "compare", "trends", "frontier"]))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    required=True,
    help="The file, whose name ends with .pdf, .svg or .png.",
)
@store_option
@profile_option
@models_option
def figure(
    experiment: str,
    what: str,
    out: Path,
    store_url: str,
    profile: str | None,
    models: tuple[str, ...],
) -> None:
    """Draw a figure about an experiment, for a paper.

    ranking: the models, best first, with intervals. compare: the differences of two models, named
    by --model A --model B. trends: the scores of its models over time. frontier: scores against
    costs. Reference tutors have hollow marks. EXPERIMENT is an ID, its start, an occasion or a
    name. It needs matplotlib.
    """
    kind = out.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InvalidInput(f"--out: {out} must end with .pdf, .svg or .png")
    if what == "compare" and len(models) != SIDES:
        raise click.UsageError("compare needs two models: --model A --model B")
    require_package("matplotlib", needed_by="figure", extra="socratic-ai-bench[figures]")
    from socratic_cli.display.figures import write  # noqa: PLC0415 - it needs matplotlib

    drawn = asyncio.run(_load(store_url, experiment, what, profile, models))
    with whole_binary_file(out) as file:
        write(drawn, file, kind)
    say(f"Wrote {out}.")


async def _load(
    store_url: str, wanted: str, what: str, profile: str | None, models: tuple[str, ...]
) -> Figure:
    async with readable_store(store_url) as store:
        found = (await find_experiment(store, wanted)).experiment_id
        return await _drawn(store, found, what, profile, models)


async def _drawn(
    store: TimelineStore, found: str, what: str, profile: str | None, models: tuple[str, ...]
) -> Figure:
    from socratic_cli.display import figures  # noqa: PLC0415 - it needs matplotlib

    if what == "compare":
        first, second = models
        sides = await model_difference(store, first, second, found, profile=profile)
        return figures.compared(sides)
    comparison = await model_comparison(store, found, profile, Filters(tuple(sorted({*models}))))
    if what == "ranking":
        return figures.ranking(comparison)
    if what == "frontier":
        return figures.frontier(comparison)
    series = await timeseries(store, profile=profile)
    shown = {each.model_id for each in comparison.models}
    kept = tuple(each for each in series.models if each.model_id in shown)
    return figures.over_time(series.model_copy(update={"models": kept}))
