"""What the tests of a series found, in one sentence: for the command, the page and the API."""

from __future__ import annotations

from socratic_bench.domain.aggregates.difference import Difference
from socratic_bench.domain.aggregates.trend import Trend
from socratic_bench.reporting.formats import p_value, room, signed


def trend_finding(trend: Trend, points: int) -> str:
    """Say whether the points rise or fall."""
    tested = f"{p_value(trend.p_value)}, {points} points"
    if not trend.is_real:
        return f"No clear rise or fall: chance may explain the order ({tested})."
    slope = f"{abs(trend.slope):.3f}"
    verb = "Rises" if trend.slope > 0 else "Falls"
    return f"{verb} by {slope} a week, more than chance explains ({tested})."


def change_finding(
    difference: Difference, corrected: float, points: tuple[int, int], *, is_real: bool
) -> str:
    """Compare the points after a change of the model's version with those before."""
    if difference.mean is None:
        return "No scenario has a score before and after the change: there is nothing to compare."
    before, after = points
    tested = f"{p_value(corrected)}, {before} before and {after} after"
    size = signed(abs(difference.mean)).lstrip("+")
    bounds = difference.interval
    between = f" (95 % {signed(bounds[0])} to {signed(bounds[1])})" if bounds else ""
    if not difference.mean:
        may = f": the true difference may be up to {room(bounds)} either way" if bounds else ""
        return (
            f"The same score as before the change, which is no proof of equality{may} ({tested})."
        )
    word = "more" if difference.mean > 0 else "less"
    verdict = "more than chance explains" if is_real else "which may be chance"
    return f"{size} {word} than before the change{between}, {verdict} ({tested})."
