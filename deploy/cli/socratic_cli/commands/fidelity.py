"""`socratic-bench fidelity`: shows how many turns each tutor keeps asking under pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import click
from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.results.fidelity.fidelity import FIDELITY, FidelityTable
from socratic_bench.results.fidelity.fidelity import fidelity as fidelity_table
from socratic_bench.results.fidelity.figures import (
    FidelityFigures,
    Interval,
    MoreFigure,
    ShareFigure,
)
from socratic_bench.results.fidelity.text_formats import (
    cells_of,
    fidelity_csv,
    fidelity_markdown,
    fidelity_sentences,
    shown_columns,
)
from socratic_bench.results.filters import Filters
from socratic_bench.results.formats import MISSING, interval, p_value, share, signed
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import name_of, say, standard_output
from socratic_cli.options.results import dimension_option, models_option
from socratic_cli.options.store import readable_store, store_option

EXPORTS: Final[Mapping[str, Callable[[FidelityTable], str]]] = {
    "csv": fidelity_csv,
    "markdown": fidelity_markdown,
}

_REMEDY: Final = "see --format json"
_CURVE: Final = (
    TableColumn("turn"),
    TableColumn("at risk"),
    TableColumn("broke"),
    TableColumn("no break yet"),
    TableColumn("95 % interval", "center"),
)
_KINDS: Final = (
    TableColumn("pressure", "left", is_name=True),
    TableColumn("lapsed"),
    TableColumn("95 % interval", "center", drop=2),
    TableColumn("more than effort"),
    TableColumn("95 % interval", "center", drop=3),
    TableColumn("p", "left", drop=4),
    TableColumn("broke", drop=1),
)

_PAIRS: Final = (
    TableColumn("tutors", "left", is_name=True),
    TableColumn("turns"),
    TableColumn("95 % interval", "center", drop=2),
    TableColumn("p", "left", drop=3),
    TableColumn("shown to be", "left", drop=1),
)


def table_of(table: FidelityTable, *, detail: bool) -> RenderableType:
    """Make the table of tutors; `detail` gives each one's curve and kinds of pressure below."""
    columns = shown_columns(table)
    rows = [list(map(name_of, cells_of(columns, model))) for model in table.models]
    fitting = [TableColumn(each.heading, each.align, each.drop, each.is_name) for each in columns]
    parts: list[RenderableType] = [FittingTable(fitting, rows, _REMEDY)]
    if detail:
        for model in table.models:
            parts += _block(model)
        parts += _pairs(table)
    lines = (Text(each, style="dim") for each in fidelity_sentences(table))
    return Group(*parts, Text(), *lines)


def _block(model: FidelityFigures) -> Iterator[RenderableType]:
    """Show the curve of one tutor, its kinds of pressure, and pass^k."""
    yield Text()
    yield Text(name_of(model.model_name), style="bold")
    if model.curve:
        points = [
            (
                str(point.turn),
                str(point.at_risk),
                str(point.happened),
                share(point.left),
                _shares(point.interval),
            )
            for point in model.curve
        ]
        yield FittingTable(_CURVE, points, _REMEDY)
    if model.kinds:
        yield Text()
        kinds = [
            (
                name_of(each.kind),
                share(each.lapsed.share),
                _shares(each.lapsed.interval),
                *_more(each.more_lapsed),
                share(None if each.broke is None else each.broke.share),
            )
            for each in model.kinds
        ]
        yield FittingTable(_KINDS, kinds, _REMEDY)
    yield Text()
    yield Text(_beside(model), style="dim")


def _pairs(table: FidelityTable) -> Iterator[RenderableType]:
    """Show the difference of each pair of ranked tutors that the table shows."""
    names = {each.model_id: each.model_name for each in table.models}
    pairs = [
        (
            f"{name_of(names[each.first])} \u2212 {name_of(names[each.second])}",
            signed(each.difference) + ("*" if each.is_real else " "),
            MISSING if each.interval is None else " to ".join(map(signed, each.interval)),
            p_value(each.p_value),
            "less than one turn" if each.is_equivalent else "",
        )
        for each in table.differences
        if each.first in names and each.second in names
    ]
    if pairs:
        yield Text()
        yield Text("Differences in turns kept; a star marks different ranks:", style="dim")
        yield FittingTable(_PAIRS, pairs, _REMEDY)


def _more(found: MoreFigure | None) -> tuple[str, str, str]:
    if found is None:
        return MISSING, MISSING, ""
    ends = found.interval
    between = MISSING if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"
    mark = "*" if found.is_real else " "
    return signed(found.difference) + mark, between, p_value(found.p_value)


def _beside(model: FidelityFigures) -> str:
    """Say the figures that have no column."""
    kept = (
        None
        if model.kept is None
        else ShareFigure(share=model.kept, interval=model.kept_interval, scenarios=model.scenarios)
    )
    parts = [f"Turns kept, breaks or not: {_with_interval(kept)}"]
    if model.flips is not None:
        parts.append(f"{model.flips:.1f} flips a run")
    if model.pass_power:
        powers = ", ".join(f"{share(each.share)} for {each.runs}" for each in model.pass_power)
        parts.append(f"all of k runs of a scenario keep to the end (pass^k): {powers}")
    if any(each.more_lapsed is not None and each.more_lapsed.is_real for each in model.kinds):
        parts.append("* more or less than chance explains")
    return "; ".join(parts) + "."


def _with_interval(found: ShareFigure | None) -> str:
    if found is None:
        return MISSING
    return (
        share(found.share)
        if found.interval is None
        else (f"{share(found.share)} ({_shares(found.interval)})")
    )


def _shares(ends: Interval | None) -> str:
    return interval(None) if ends is None else f"{share(ends[0])} to {share(ends[1])}"


@click.command()
@click.argument("experiment", required=False)
@store_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", *EXPORTS]),
    default="table",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--detail", is_flag=True, help="Show each tutor's curve, kinds of pressure and pass^k."
)
@click.option(
    "--profile",
    metavar="NAME",
    default=FIDELITY,
    show_default=True,
    help="The profile whose lapses and breaks are counted.",
)
@models_option
@dimension_option
def fidelity(
    experiment: str | None,
    store_url: str,
    output: str,
    profile: str,
    models: tuple[str, ...],
    dimension: str | None,
    *,
    as_json: bool,
    detail: bool,
) -> None:
    """Show how many turns each tutor keeps asking.

    EXPERIMENT is an ID, its start, an occasion or a name. Without it: the leaderboard's default
    experiments, among those with scores by the profile. `rescore --profile fidelity-1` scores any
    experiment of several turns, without a model.
    """
    filters = Filters(tuple(sorted({*models})), dimension)
    table = asyncio.run(_load(store_url, experiment, profile, filters))
    output = "json" if as_json else output
    if output == "json":
        click.echo(table.model_dump_json())
    elif export := EXPORTS.get(output):
        click.echo(export(table), nl=False)
    elif table.models:
        standard_output().print(table_of(table, detail=detail))
    elif table.filtered is not None:
        say(table.filtered.told)
    else:
        say("There are no results yet: socratic-bench run CONFIG")


async def _load(
    store_url: str, experiment: str | None, profile: str, filters: Filters
) -> FidelityTable:
    async with readable_store(store_url) as store:
        return await fidelity_table(store, experiment, profile, filters)
