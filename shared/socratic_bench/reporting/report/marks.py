"""Marks on an axis from 0.00 to 1.00, as inline SVG."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from socratic_bench.reporting.formats import figure, interval
from socratic_bench.reporting.report.markup import Child, element


def interval_mark(mean: float | None, bounds: tuple[float, float] | None) -> Child:
    """Return a dot at the mean and a line over its interval; nothing without a mean."""
    if mean is None:
        return ""
    said = figure(mean) if bounds is None else f"{figure(mean)}, 95 % {interval(bounds)}"
    marks = [element("title", said), _line(0, 1, "axis")]
    if bounds is not None:
        marks.append(_line(*bounds, "interval"))
    marks.append(element("circle", cx=_x(mean), cy="6", r="3.5"))
    return element("svg", *marks, viewBox="-4 0 128 12", role="img", width="128", height="12")


def _line(left: float, right: float, kind: str) -> Element:
    return element("line", x1=_x(left), x2=_x(right), y1="6", y2="6", class_=kind)


def _x(value: float) -> str:
    return f"{120 * value:.1f}"
