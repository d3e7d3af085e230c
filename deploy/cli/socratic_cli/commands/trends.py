"""`socratic-bench trends`: shows each model's score, or another figure, over time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Any, Final

import click
from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.domain.aggregates.fidelity import MANY_LOST
from socratic_bench.results.filters import Filters
from socratic_bench.results.formats import MISSING, figure, interval, share, signed
from socratic_bench.results.trends.changes import SeriesTrend
from socratic_bench.results.trends.figures import TURNS_KEPT
from socratic_bench.results.trends.levels import DetectableChange, SeriesChangePoint
from socratic_bench.results.trends.timeseries import (
    ModelSeries,
    Point,
    TimelineStore,
    Timeseries,
    timeseries,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import counted, name_of, say, standard_output
from socratic_cli.options.results import dimension_option, profile_option, time_of
from socratic_cli.options.store import readable_store, store_option


def _models(figure: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn("model", "left", is_name=True),
        TableColumn("points"),
        TableColumn("first"),
        TableColumn("newest"),
        TableColumn(figure),
        TableColumn("95 % interval", "center", drop=2),
        TableColumn("difference"),
        TableColumn("detectable", drop=1),
    )


def _points(figure: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn("experiment", "left", is_name=True),
        TableColumn("begun"),
        TableColumn(figure),
        TableColumn("95 % interval", "center"),
        TableColumn("coverage", drop=1),
        TableColumn("difference"),
        TableColumn("joins", "left", drop=2),
    )


_REMEDY: Final = "see --json"
DIFFER: Final = (
    "* These two experiments differ, by their common scenarios. That does not show that the model "
    "changed: a shift of a whole occasion differs as well."
)
DETECTABLE: Final = (
    "detectable: the least step between both halves of the newest points that join which they show "
    "with 80 % power, at 5 %."
)
NO_POINTS: Final = "There is no experiment yet: a trend needs a point for each occasion."
ONE_POINT: Final = (
    "There is one point alone: run the same configuration again with another `occasion`."
)


def trends_table(found: Timeseries) -> RenderableType:
    """Make the table of all models: the newest points, and the real trends and change points."""
    if not found.models:
        return Text(NO_POINTS)
    rows = [_model_row(each) for each in found.models]
    parts: list[RenderableType] = [FittingTable(_models(figure_name(found)), rows, _REMEDY)]
    told = [
        Text.assemble((name_of(each.model_name), "bold"), f", {_dates(trend)}: {trend.finding}")
        for each in found.models
        for trend in _tested(each)
        if trend.is_real
    ]
    told += [
        Text.assemble((name_of(each.model_name), "bold"), f": {each.date_difference.finding}")
        for each in found.models
        if each.date_difference
    ]
    if told:
        parts += [Text(), *told]
    if any(_detectable(each) != MISSING for each in found.models):
        parts += [Text(), Text(DETECTABLE, style="dim")]
    if any(_differs(each.points[-1]) for each in found.models):
        parts += [Text(), Text(DIFFER, style="dim")]
    if all(len(each.points) == 1 for each in found.models):
        parts += [Text(), Text(ONE_POINT, style="dim")]
    parts += _notes(found)
    return Group(*parts)


def figure_name(found: Timeseries) -> str:
    """Return the heading of the figure that a series shows."""
    return found.figure if found.figure != TURNS_KEPT else f"kept of {found.greatest:.0f}"


def model_trend_table(found: Timeseries) -> RenderableType:
    """Make the table of one model: every point, trends, change points, and other versions."""
    [series] = found.models
    kind = "  reference tutor" if series.kind == "reference" else ""
    days = Counter(map(_day, series.points))
    parts: list[RenderableType] = [
        Text.assemble((name_of(series.model_name), "bold"), (f"  {series.model_id}{kind}", "dim")),
        Text(),
        FittingTable(
            _points(figure_name(found)), [_point_row(each, days) for each in series.points], _REMEDY
        ),
    ]
    told = [*_trends(series), *_copies(series), *_lost(series), *_changes(series)]
    if told:
        parts += [Text(), *map(Text, told)]
    if len(series.points) == 1:
        parts += [Text(), Text(ONE_POINT, style="dim")]
    parts += _notes(found)
    return Group(*parts)


def _model_row(series: ModelSeries) -> tuple[str, ...]:
    newest = series.points[-1]
    tag = " (reference)" if series.kind == "reference" else ""
    return (
        name_of(series.model_name) + tag,
        f"{len(series.points)}",
        _day(series.points[0]),
        _day(newest),
        figure(newest.value),
        interval(newest.confidence_interval),
        _change(newest),
        _detectable(series),
    )


def _detectable(series: ModelSeries) -> str:
    """Format the minimal detectable change of the newest points that join."""
    found = series.detectable_changes
    reaches = found and found[-1].until >= _first_of_stretch(series).created_at
    return figure(found[-1].least if reaches else None)


def _first_of_stretch(series: ModelSeries) -> Point:
    joining = takewhile(lambda point: point.joins, reversed(series.points))
    return series.points[-1 - sum(1 for _ in joining)]


def _point_row(point: Point, days: Mapping[str, int]) -> tuple[str, ...]:
    """Name the time, too, of points that share a day."""
    day = _day(point)
    return (
        name_of(point.title or point.experiment_id),
        f"{day} {point.created_at:%H:%M} UTC" if days[day] > 1 else day,
        figure(point.value),
        interval(point.confidence_interval),
        share(point.coverage),
        _change(point),
        _joins(point),
    )


def _joins(point: Point) -> str:
    if point.benchmark_changed:
        return f"changed: {' and '.join(point.benchmark_changed)}"
    return "yes" if point.joins else MISSING


def _change(point: Point) -> str:
    """Mark a difference from the point before that chance does not explain."""
    if point.change is None:
        return MISSING
    return signed(point.change.difference) + ("*" if _differs(point) else " ")


def _differs(point: Point) -> bool:
    return point.change is not None and point.change.is_real


def _trends(series: ModelSeries) -> Iterator[str]:
    for trend in _tested(series):
        yield f"{_dates(trend)}: {trend.finding}"
    for least in series.detectable_changes:
        yield f"{_dates(least)}: {least.finding}"
    if series.date_difference:
        yield series.date_difference.finding
    if any(_differs(point) for point in series.points):
        yield DIFFER


def _tested(series: ModelSeries) -> list[SeriesTrend | SeriesChangePoint]:
    return [*series.trends, *series.change_points]


def _copies(series: ModelSeries) -> Iterator[str]:
    for point in series.points:
        if point.reused:
            yield (
                f"{_day(point)}: {point.reused} of {point.answers} answers are copies of earlier "
                "ones: its difference is that of the others."
            )


def _lost(series: ModelSeries) -> Iterator[str]:
    for point in series.points:
        if point.lost is not None and point.lost.share > MANY_LOST:
            yield f"{_day(point)}: {point.lost.told_of('the tutor')}"


def _changes(series: ModelSeries) -> Iterator[str]:
    points = {each.experiment_id: each for each in series.points}
    for change in series.version_changes:
        named = f"{_names(change.before)} became {_names(change.after)}"
        yield f"{_day(points[change.experiment_id])}: {named}. {change.finding}"


def _names(versions: tuple[str, ...]) -> str:
    return " and ".join(map(name_of, versions))


def _dates(trend: SeriesTrend | SeriesChangePoint | DetectableChange) -> str:
    return f"{trend.since:%Y-%m-%d} to {trend.until:%Y-%m-%d}"


def _day(point: Point) -> str:
    return f"{point.created_at:%Y-%m-%d}"


def _notes(found: Timeseries) -> list[RenderableType]:
    told = list(found.notes)
    if found.left_out:
        told.append(f"{counted(found.left_out, 'older experiment')} left out.")
    return [Text(), *(Text(each, style="dim") for each in told)] if told else []


@click.command()
@click.argument("model", required=False)
@store_option
@profile_option
@click.option(
    "--figure",
    "shown",
    metavar="NAME",
    default=OVERALL,
    show_default=True,
    help=f"The figure to follow: {OVERALL}, a vector, or {TURNS_KEPT}.",
)
@click.option("--turn", type=click.IntRange(min=1), help="One turn. Without it: all.")
@dimension_option
@click.option(
    "--changed",
    metavar="TIME",
    callback=partial(time_of, "changed"),
    help="Compare the points before this time with those at it or later: 2026-10-01.",
)
@click.option(
    "--fail-on-drop",
    "fails_on_drop",
    is_flag=True,
    help="Exit code 1 if a real model falls, as far as its newest points, more than chance "
    "explains. A reference tutor counts only as MODEL.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `/api/timeseries` has it.")
def trends(
    model: str | None,
    store_url: str,
    profile: str | None,
    shown: str,
    turn: int | None,
    dimension: str | None,
    changed: datetime | None,
    *,
    fails_on_drop: bool,
    as_json: bool,
) -> None:
    """Show each model's score over time, and where it changed.

    Each experiment is a point. Points compare only where profile, scenarios, prompt and parameters
    are the same. With MODEL: every point, and the points before and after another version. Turns
    kept are those of experiments with several turns that have scores by `fidelity-1`.
    """
    read = partial(
        timeseries,
        model=model,
        profile=profile,
        filters=Filters(dimension=dimension),
        figure=shown,
        turn=turn,
        changed=changed,
    )
    found = asyncio.run(_load(store_url, read))
    if as_json:
        click.echo(found.model_dump_json())
    elif model is None:
        standard_output().print(trends_table(found))
    else:
        standard_output().print(model_trend_table(found))
    if fails_on_drop:
        fail_on_drop(found, model)


def fail_on_drop(found: Timeseries, model: str | None) -> None:
    """Exit with code 1 if a model falls; without `model`, of the real ones alone."""
    checked = [each for each in found.models if model is not None or each.kind == "model"]
    fallen = [name_of(each.model_name) for each in checked if _has_dropped(each)]
    say(f"Drops in {counted(len(checked), 'model')}: {', '.join(fallen) or 'none'}.")
    if fallen:
        raise click.exceptions.Exit(1)


def _has_dropped(series: ModelSeries) -> bool:
    """Whether a test finds a fall in the newest points that join, or after the named date."""
    since = _first_of_stretch(series).created_at
    moved = [each.slope_per_week for each in series.trends if each.is_real and each.until >= since]
    moved += [
        each.difference for each in series.change_points if each.is_real and each.until >= since
    ]
    named = series.date_difference
    if named is not None and named.is_real and named.difference is not None:
        moved.append(named.difference)
    return any(each < 0 for each in moved)


async def _load(
    store_url: str, read: Callable[[TimelineStore], Coroutine[Any, Any, Timeseries]]
) -> Timeseries:
    async with readable_store(store_url) as store:
        return await read(store)
