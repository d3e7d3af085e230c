"""Changes between the points of a series, their trend, and what the tests found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.difference import (
    FAMILY_ERROR,
    NO_DIFFERENCE,
    Difference,
    holm,
)
from socratic_bench.domain.aggregates.trend import Trend, trend
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.results.cache.scores import ModelScores
from socratic_bench.results.formats import p_value, room, signed
from socratic_bench.results.trends.figures import SCORES, PointFigure, Wording


def trend_finding(trend: Trend, points: int, words: Wording = SCORES) -> str:
    """Say whether the points rise or fall."""
    tested = f"{p_value(trend.p_value)}, {points} points"
    if not trend.is_real:
        return f"No clear rise or fall: chance may explain the order ({tested})."
    slope = f"{abs(trend.slope):.3f}"
    verb = "Rises" if trend.slope > 0 else "Falls"
    return f"{verb} by {slope}{words.unit} a week, more than chance explains ({tested})."


def change_finding(
    difference: Difference,
    corrected: float,
    points: tuple[int, int],
    words: Wording = SCORES,
    *,
    is_real: bool,
) -> str:
    """Compare the points after another version with those before: it claims no changed model."""
    if difference.mean is None:
        return f"No scenario has {words.one} before and after: there is nothing to compare."
    before, after = points
    tested = f"{p_value(corrected)}, {before} before and {after} after"
    size = signed(abs(difference.mean)).lstrip("+")
    bounds = difference.interval
    between = f" (95 % {signed(bounds[0])} to {signed(bounds[1])})" if bounds else ""
    if not difference.mean:
        may = f": the true difference may be up to {room(bounds)} either way" if bounds else ""
        same = f"The same {words.noun} before and after"
        return f"{same}, which is no proof of equality{may} ({tested})."
    word = "more" if difference.mean > 0 else "less"
    size = f"{size}{words.unit} {word} after than before{between}"
    if is_real:
        return f"These experiments differ: {size} ({tested}, paired by scenario)."
    return f"{size}, which may be chance ({tested}, paired by scenario)."


_WEEK: Final = timedelta(weeks=1)

BenchmarkPart = Literal["profile", "scenarios", "prompt or parameters"]


class Change(BaseModel):
    """How the experiment differs from the one of the point before, where the two join.

    Paired by scenario. A shock that moves all answers of an occasion is part of the difference, so
    it is no evidence of a change of the model.
    """

    model_config = ConfigDict(frozen=True)

    difference: float | None
    interval: tuple[float, float] | None
    """95 %, for this change alone; null with fewer than five common scenarios."""

    p_value: float
    """Two-sided, corrected by Holm's method for the changes of the series."""

    is_real: bool
    """Whether these two experiments differ: the p value is at most 5 %."""


class VersionChange(BaseModel):
    """The points before and after the provider reported another version of the model.

    Paired by scenario, as a `Change` is.
    """

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    """The first experiment with the version after."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    points_before: int
    points_after: int
    difference: float | None
    """After less before, paired by scenario, each point's runs together."""

    interval: tuple[float, float] | None
    """95 %."""

    p_value: float
    """Two-sided, corrected by Holm's method for the changes of version in the series."""

    is_real: bool
    """Whether these experiments differ: the p value is at most 5 %."""

    finding: str
    """The test in one sentence."""


class SeriesTrend(BaseModel):
    """The trend of five or more points that join: Mann and Kendall's test, and Sen's slope."""

    model_config = ConfigDict(frozen=True)

    since: datetime
    until: datetime
    points: int
    slope_per_week: float
    p_value: float
    """Two-sided."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    finding: str
    """The test in one sentence."""


class Measured(NamedTuple):
    """A model in an experiment by a profile, with the versions that the provider reported."""

    experiment: ExperimentOutline
    profile: str
    scores: ModelScores
    versions: tuple[str, ...]
    own: ModelScores
    """The scores of the answers that the experiment asked for itself: copies would agree with the
    points before. No scores where it has copies that cannot be told from the others."""


def joined(one: Measured, other: Measured) -> bool:
    """Whether the figures of two points compare."""
    # By one profile, an older experiment with another own profile compares once it is rescored.
    return (one.profile, one.experiment.asking_id) == (other.profile, other.experiment.asking_id)


def benchmark_changes(one: Measured, other: Measured) -> tuple[BenchmarkPart, ...]:
    """Return the parts of the benchmark that differ between two points."""
    if joined(one, other):
        return ()
    parts: list[BenchmarkPart] = []
    if one.profile != other.profile:
        parts.append("profile")
    if {each.said for each in one.experiment.scenarios} != {
        each.said for each in other.experiment.scenarios
    }:
        parts.append("scenarios")
    return tuple(parts) or ("prompt or parameters",)


def changes(series: Sequence[Measured]) -> list[Change | None]:
    """Return the change at each point; None where it does not join the one before."""
    found = [
        _difference(own.own.figure, before.scores.figure) if joined(own, before) else None
        for before, own in pairwise(series)
    ]
    p_values = iter(holm([each.p_value for each in found if each is not None]))
    told = [None if each is None else _change(each, next(p_values)) for each in found]
    return [None, *told] if series else []


def _difference(one: PointFigure | None, other: PointFigure | None) -> Difference:
    return NO_DIFFERENCE if one is None or other is None else one.less(other)


def _change(difference: Difference, p_value: float) -> Change:
    return Change(
        difference=difference.mean,
        interval=difference.interval,
        p_value=p_value,
        is_real=p_value <= FAMILY_ERROR and bool(difference.mean),
    )


def trends(series: Sequence[Measured], words: Wording) -> Iterator[SeriesTrend]:
    """Yield the trend of each stretch of points that join, if it has enough of them."""
    for stretch in stretches(series):
        scored = level_points(stretch)
        times = [each.experiment.created_at for each in scored]
        weeks = [(at - times[0]) / _WEEK for at in times]
        if found := trend(weeks, [level(each) for each in scored]):
            yield SeriesTrend(
                since=times[0],
                until=times[-1],
                points=len(scored),
                slope_per_week=found.slope,
                p_value=found.p_value,
                is_real=found.is_real,
                finding=trend_finding(found, len(scored), words),
            )


def version_changes(series: Sequence[Measured], words: Wording) -> tuple[VersionChange, ...]:
    """Compare the points on both sides of each change of version, within joined stretches."""
    found: list[tuple[list[Measured], list[Measured], Difference]] = []
    for stretch in stretches(series):
        blocks: list[list[Measured]] = []
        for each in stretch:
            if each.versions:
                if blocks and blocks[-1][0].versions == each.versions:
                    blocks[-1].append(each)
                else:
                    blocks.append([each])
        found += [
            (before, after, _difference(_together(after, own=True), _together(before)))
            for before, after in pairwise(blocks)
        ]
    p_values = holm([difference.p_value for _, _, difference in found])
    return tuple(
        _version_change(before, after, difference, p_value, words)
        for (before, after, difference), p_value in zip(found, p_values, strict=True)
    )


def _version_change(
    before: Sequence[Measured],
    after: Sequence[Measured],
    difference: Difference,
    p_value: float,
    words: Wording,
) -> VersionChange:
    is_real = p_value <= FAMILY_ERROR and bool(difference.mean)
    points = (len(before), len(after))
    return VersionChange(
        experiment_id=after[0].experiment.experiment_id,
        before=before[0].versions,
        after=after[0].versions,
        points_before=len(before),
        points_after=len(after),
        difference=difference.mean,
        interval=difference.interval,
        p_value=p_value,
        is_real=is_real,
        finding=change_finding(difference, p_value, points, words, is_real=is_real),
    )


def stretches(series: Sequence[Measured]) -> Iterator[list[Measured]]:
    """Yield the points that join each other, oldest first."""
    stretch: list[Measured] = []
    for each in series:
        if stretch and not joined(each, stretch[-1]):
            yield stretch
            stretch = []
        stretch.append(each)
    if stretch:
        yield stretch


def level_points(stretch: Iterable[Measured]) -> list[Measured]:
    """Return the points that count where a point is the unit of a test.

    Each has the figure, and an answer of its own: a point of copies repeats an earlier one.
    """
    return [
        each
        for each in stretch
        if each.scores.figure is not None and not 0 < each.scores.answers <= each.scores.reused
    ]


def level(point: Measured) -> float:
    """Return the figure of a point that has one."""
    return 0.0 if point.scores.figure is None else point.scores.figure.value


def _together(points: Sequence[Measured], *, own: bool = False) -> PointFigure | None:
    """Return the figure of several points of one model and profile.

    `own` leaves out copies of earlier answers.
    """
    every = ((point.own if own else point.scores).figure for point in points)
    known = [each for each in every if each is not None]
    return reduce(lambda one, other: one.with_runs_of(other), known) if known else None
