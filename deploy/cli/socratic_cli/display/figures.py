"""Figures for a paper: a ranking, two models, scores over time, scores against costs.

Every name is data: a dollar sign in it is no formula. Reference tutors have hollow marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from socratic_bench.results.compare.model_difference import ModelDifference
from socratic_bench.results.formats import printable
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.leaderboard.leaderboard import ModelComparison
from socratic_bench.results.trends.timeseries import ModelSeries, Point, Timeseries
from socratic_bench.version import __version__

WIDTH: Final = 6.3
"""Inches: the width of a text on A4 paper."""

ROW: Final = 0.28
"""Inches of a row's height."""

LONGEST_NAME: Final = 40
THOUSAND: Final = 1000
WIDE: Final = 12

# The palette of Okabe and Ito (2008), which colour-blind readers tell apart.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: Final[Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # texts stay texts
    "svg.fonttype": "none",
    "svg.hashsalt": "socratic-bench",  # the same figure has the same bytes
    "text.parse_math": False,
}


@rc_context(_STYLE)
def ranking(comparison: ModelComparison) -> Figure:
    """Draw the models' means with their intervals, best first, and the constant reply."""
    models = [each for each in comparison.models if each.overall_score is not None]
    figure, axes = _rows(len(models))
    for row, model in enumerate(models):
        _mark(
            axes,
            model.overall_score or 0,
            row,
            model.confidence_interval,
            is_filled=_is_real(model),
        )
    _name_rows(axes, [_named(model) for model in models])
    axes.set_xlim(0, 1)
    axes.set_xlabel("Overall score, with 95 % interval")
    baseline = None if comparison.baseline is None else comparison.baseline.overall_score
    if baseline is not None:
        axes.axvline(baseline, color="0.6", linestyle=":", zorder=0)
        axes.annotate(
            "constant reply",
            (baseline, 1.01),
            xycoords=("data", "axes fraction"),
            ha="center",
            color="0.4",
            size=7,
        )
    _tell(axes, comparison.profile)
    return figure


@rc_context(_STYLE)
def compared(difference: ModelDifference) -> Figure:
    """Draw the differences of two models, with their intervals: overall and each vector."""
    pairs = [each for each in difference.figures if each.difference is not None]
    figure, axes = _rows(len(pairs))
    for row, pair in enumerate(pairs):
        _mark(axes, pair.difference or 0, row, pair.interval, is_filled=True)
    _name_rows(axes, [_name(each.name) for each in pairs])
    axes.axvline(0, color="0.6", linestyle=":", zorder=0)
    first, second = (_name(each.model_name) for each in (difference.first, difference.second))
    axes.set_xlabel(
        f"{first} − {second}\nby {difference.scenarios_shared} scenarios of both, 95 % interval"
    )
    _tell(axes, difference.profile)
    return figure


@rc_context(_STYLE)
def over_time(found: Timeseries) -> Figure:
    """Draw each model's figure over time; a line joins points of the same conditions."""
    figure, axes = _axes(3.2)
    for number, series in enumerate(found.models):
        _draw_series(axes, series, number)
    axes.set_ylim(0, found.greatest)
    axes.set_ylabel("Overall score, with 95 % interval")
    axes.xaxis_date()
    figure.autofmt_xdate()
    _add_legend(axes, len(found.models))
    profiles = dict.fromkeys(each.profile for series in found.models for each in series.points)
    _tell(axes, ", ".join(profiles))
    return figure


def _draw_series(axes: Axes, series: ModelSeries, number: int) -> None:
    shown = [each for each in series.points if each.value is not None]
    colour = COLOURS[number % len(COLOURS)]
    look: dict[str, Any] = {
        "color": colour,
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
        "markerfacecolor": "white" if series.kind == "reference" else colour,
    }
    start = 0
    for place in range(1, len(shown) + 1):
        if place < len(shown) and shown[place].joins:
            continue
        part = shown[start:place]
        label = _name(series.model_name, series.kind) if start == 0 else None
        axes.plot(_dates(part), [each.value or 0 for each in part], label=label, **look)
        start = place
    for point in shown:
        if point.confidence_interval is not None:
            axes.vlines(_dates([point]), *point.confidence_interval, color=colour, alpha=0.5)


@rc_context(_STYLE)
def frontier(comparison: ModelComparison) -> Figure:
    """Draw scores against the cost of 1,000 responses, of models with a known cost.

    A staircase joins the real models that no other one beats: the cost of a reference tutor is
    simulated. Costs that differ by a factor of WIDE have a logarithmic axis.
    """
    figure, axes = _axes(3.6)
    spots = [
        (each.mean_cost_usd * THOUSAND, each.overall_score, each)
        for each in comparison.models
        if each.overall_score is not None and each.mean_cost_usd is not None
    ]
    spots.sort(key=lambda spot: (spot[0], -spot[1]))
    for cost, score, model in spots:
        inside = COLOURS[0] if _is_real(model) else "white"
        axes.plot(cost, score, marker="o", color=COLOURS[0], markerfacecolor=inside)
        if model.confidence_interval is not None:
            axes.vlines(cost, *model.confidence_interval, color=COLOURS[0], alpha=0.5)
        axes.annotate(
            _named(model), (cost, score), xytext=(5, 4), textcoords="offset points", size=7
        )
    unbeaten: list[tuple[float, float]] = []
    for cost, score, model in spots:
        if _is_real(model) and (not unbeaten or score > unbeaten[-1][1]):
            unbeaten.append((cost, score))
    axes.plot(*zip(*unbeaten, strict=True), drawstyle="steps-post", color="0.6", zorder=0)
    axes.set_ylim(0, 1)
    costs = [cost for cost, *_ in spots]
    if costs and 0 < WIDE * costs[0] <= costs[-1]:
        axes.set_xscale("log", subs=())
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel("Cost of 1,000 responses in USD")
    axes.set_ylabel("Overall score, with 95 % interval")
    _tell(axes, comparison.profile)
    return figure


@rc_context(_STYLE)
def write(figure: Figure, file: IO[bytes], kind: str) -> None:
    """Write a figure as `pdf`, `svg` or `png`. Equal figures have equal bytes."""
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[kind]
    figure.savefig(file, format=kind, dpi=200, bbox_inches="tight", metadata=undated)


def _rows(rows: int) -> tuple[Figure, Axes]:
    figure, axes = _axes(0.9 + ROW * max(rows, 1))
    axes.set_ylim(max(rows, 1) - 0.5, -0.5)
    return figure, axes


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.add_subplot()


def _mark(
    axes: Axes,
    value: float,
    row: int,
    interval: tuple[float, float] | None,
    *,
    is_filled: bool,
) -> None:
    if interval is not None:
        axes.hlines(row, *interval, color=COLOURS[0], linewidth=1.5)
    inside = COLOURS[0] if is_filled else "white"
    axes.plot(value, row, marker="o", color=COLOURS[0], markerfacecolor=inside, markersize=5)


def _name_rows(axes: Axes, names: Iterable[str]) -> None:
    shown = list(names)
    axes.set_yticks(range(len(shown)), shown)
    axes.tick_params("y", length=0)
    axes.grid(axis="x", color="0.9", zorder=0)


def _dates(points: Iterable[Point]) -> list[float]:
    return [date2num(each.created_at) for each in points]  # type: ignore[no-untyped-call]


def _add_legend(axes: Axes, entries: int) -> None:
    if entries:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)


def _is_real(model: ModelFigures) -> bool:
    return model.kind == "model"


def _named(model: ModelFigures) -> str:
    return _name(model.model_name, model.kind)


def _name(name: str, kind: str = "model") -> str:
    shown = printable(name)
    short = shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}…"
    return f"{short} (reference)" if kind == "reference" else short


def _tell(axes: Axes, profile: str) -> None:
    """Write below a figure where its scores are from."""
    axes.annotate(
        f"Socratic Bench {__version__}, {profile}",
        (1, 0),
        xycoords="axes fraction",
        xytext=(0, -54),
        textcoords="offset points",
        ha="right",
        size=6,
        color="0.4",
    )
