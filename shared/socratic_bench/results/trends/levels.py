"""The levels of a series: where its points moved. A point is the unit of each test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.change_point import FEWEST_A_SIDE, ChangePoint, change_point
from socratic_bench.domain.aggregates.level_difference import (
    LevelDifference,
    level_difference,
    minimal_detectable_change,
)
from socratic_bench.results.formats import figure, moment, p_value, signed
from socratic_bench.results.trends.changes import Measured, level, level_points, stretches
from socratic_bench.results.trends.figures import SCORES, Wording


class SeriesChangePoint(BaseModel):
    """The place at which eight or more points that join moved most, by permutation of points."""

    model_config = ConfigDict(frozen=True)

    since: datetime
    until: datetime
    experiment_id: str
    """The first experiment after it."""

    last_before: datetime
    first_after: datetime
    earliest: datetime
    """The last point before the earliest place, by a 95 % interval: the change came after it."""

    latest: datetime
    """The first point after the latest place, by this interval: the change came before it."""

    points_before: int
    points_after: int
    difference: float
    """The mean of the points after less that of those before. It is that of the best of all places,
    so it tends to be too large."""

    p_value: float
    """Of 1,000 permutations of the points."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    finding: str
    """The test in one sentence."""


def change_points(series: Sequence[Measured], words: Wording) -> Iterator[SeriesChangePoint]:
    """Yield the change point of each stretch of points that join, if it has enough of them."""
    for stretch in stretches(series):
        points = level_points(stretch)
        if found := change_point([level(each) for each in points]):
            yield _series_change_point(points, found, words)


def _series_change_point(
    points: Sequence[Measured], found: ChangePoint, words: Wording
) -> SeriesChangePoint:
    times = [each.experiment.created_at for each in points]
    around = times[found.before - 1], times[found.before]
    bounds = times[found.earliest - 1], times[found.latest]
    return SeriesChangePoint(
        since=times[0],
        until=times[-1],
        experiment_id=points[found.before].experiment.experiment_id,
        last_before=around[0],
        first_after=around[1],
        earliest=bounds[0],
        latest=bounds[1],
        points_before=found.before,
        points_after=len(points) - found.before,
        difference=found.difference,
        p_value=found.p_value,
        is_real=found.is_real,
        finding=change_point_finding(found, len(points), around, bounds, words),
    )


def change_point_finding(
    found: ChangePoint,
    points: int,
    around: tuple[datetime, datetime],
    bounds: tuple[datetime, datetime],
    words: Wording = SCORES,
) -> str:
    """Say between which points the series moved to another level, and within which dates."""
    if not found.is_real:
        tested = f"{p_value(found.p_value)}, {points} points"
        return f"No clear change point: chance may explain the largest step ({tested})."
    verb = "Rises" if found.difference > 0 else "Falls"
    tested = f"{p_value(found.p_value)}, {found.before} before and {points - found.before} after"
    return (
        f"{verb} by {figure(abs(found.difference))}{words.unit} between {_span(around)} "
        f"(95 % between {_span(bounds)}), more than chance explains ({tested})."
    )


class DateDifference(BaseModel):
    """The points that join before and after a date that a reader names."""

    model_config = ConfigDict(frozen=True)

    changed: datetime
    """Points created at this time or later stand after it."""

    points_before: int
    points_after: int
    difference: float | None
    """The mean of the points after less that of those before; null with fewer than two points on
    either side."""

    interval: tuple[float, float] | None
    """95 %, by Student's t of the points; null without a difference, and where the points of each
    side are all equal."""

    p_value: float
    """Two-sided; 1 without a difference."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    finding: str
    """The test in one sentence."""


class DetectableChange(BaseModel):
    """The minimal detectable change of four or more points that join."""

    model_config = ConfigDict(frozen=True)

    since: datetime
    until: datetime
    points: int
    least: float
    """The least step between both halves of the points that a comparison finds in 80 % of series,
    at 5 %, by the spread of neighbouring points."""

    finding: str
    """The same in one sentence."""


def detectable_changes(series: Sequence[Measured], words: Wording) -> Iterator[DetectableChange]:
    """Yield the minimal detectable change of each stretch, if it has enough points."""
    for stretch in stretches(series):
        points = level_points(stretch)
        least = minimal_detectable_change([level(each) for each in points])
        if least is not None:
            yield DetectableChange(
                since=points[0].experiment.created_at,
                until=points[-1].experiment.created_at,
                points=len(points),
                least=least,
                finding=detectable_finding(least, len(points), words),
            )


def detectable_finding(least: float, points: int, words: Wording = SCORES) -> str:
    """Say which step these points would show."""
    step = f"{figure(least)}{words.unit}"
    return (
        f"{points} points like these show a step of {step} between their halves with "
        "80 % power, at 5 %; they may miss a smaller one."
    )


def date_difference(
    series: Sequence[Measured], changed: datetime, words: Wording
) -> DateDifference:
    """Compare the points before and after a date, within the stretch of points around it."""
    before: list[float] = []
    after: list[float] = []
    for stretch in stretches(series):
        points = level_points(stretch)
        sides = [each.experiment.created_at >= changed for each in points]
        if any(sides) and not all(sides):
            before = [level(each) for each, later in zip(points, sides, strict=True) if not later]
            after = [level(each) for each, later in zip(points, sides, strict=True) if later]
    found = level_difference(before, after)
    return DateDifference(
        changed=changed,
        points_before=len(before),
        points_after=len(after),
        difference=None if found is None else found.difference,
        interval=None if found is None else found.interval,
        p_value=1.0 if found is None else found.p_value,
        is_real=found is not None and found.is_real,
        finding=date_finding(found, changed, (len(before), len(after)), words),
    )


def date_finding(
    found: LevelDifference | None,
    changed: datetime,
    points: tuple[int, int],
    words: Wording = SCORES,
) -> str:
    """Compare the points after a date with those before, in one sentence."""
    date = moment(changed).removesuffix(" 00:00 UTC")
    before, after = points
    if found is None and not before:
        return f"No points that join stand on both sides of {date}: there is nothing to compare."
    if found is None:
        return (
            f"{before} joined before {date} and {after} after: "
            f"a comparison needs {FEWEST_A_SIDE} points on each side."
        )
    tested = f"{p_value(found.p_value)}, {before} points before and {after} after"
    if not found.difference:
        return f"The same mean before and after {date}, which is no proof of equality ({tested})."
    bounds = found.interval
    between = f" (95 % {signed(bounds[0])} to {signed(bounds[1])})" if bounds else ""
    word = "more" if found.difference > 0 else "less"
    verdict = "more than chance explains" if found.is_real else "which may be chance"
    size = f"{figure(abs(found.difference))}{words.unit} {word} after {date} than before{between}"
    return f"{size}, {verdict} ({tested})."


def _span(dates: tuple[datetime, datetime]) -> str:
    return f"{dates[0]:%Y-%m-%d} and {dates[1]:%Y-%m-%d}"
