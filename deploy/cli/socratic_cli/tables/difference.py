"""The difference of two models as tables for people."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.reporting.formats import MISSING, figure, moment, signed
from socratic_bench.reporting.model_difference import ModelDifference, Side
from socratic_cli.display.terminal import counted, name_of
from socratic_cli.tables.fitting import Column, FittingTable

MOST_SCENARIOS: Final = 5
"""The most scenarios in the table; `--json` has all of them."""

MOST_TO_TELL: Final = 1_000
"""A difference that takes more scenarios than this to be seen is told as such."""

_FIGURES = (
    Column("", "left", is_name=True),
    Column("A"),
    Column("B"),
    Column("A \u2212 B"),
    Column("95 % interval", "center"),
)
_SCENARIOS = (
    Column("scenario", "left", is_name=True),
    Column("dimension", "left", drop=1, is_name=True),
    Column("A"),
    Column("B"),
    Column("A \u2212 B"),
)


def difference_table(difference: ModelDifference) -> RenderableType:
    """Make the tables: both models, their figures, and the scenarios that separate them most."""
    figures = [
        (
            name_of(each.name),
            figure(each.first),
            figure(each.second),
            signed(each.difference),
            _interval(each.interval),
        )
        for each in difference.figures
    ]
    scenarios = [
        (
            name_of(each.scenario_id),
            name_of(each.dimension),
            figure(each.first),
            figure(each.second),
            signed(each.difference),
        )
        for each in difference.by_scenario[:MOST_SCENARIOS]
    ]
    parts: list[RenderableType] = [
        _side("A", difference.first),
        _side("B", difference.second),
        Text(),
        FittingTable(_FIGURES, figures, "see --json"),
        Text(),
        Text(_finding(difference)),
    ]
    if difference.note:
        parts.append(Text(difference.note, style="dim"))
    if scenarios:
        heading = Text("The scenarios that separate them most:", style="dim")
        parts += [Text(), heading, FittingTable(_SCENARIOS, scenarios, "see --json")]
    return Group(*parts)


def _side(letter: str, side: Side) -> Text:
    title = f"{name_of(side.title)}  " if side.title else ""
    about = f"  {title}{moment(side.created_at)}  {side.experiment_id}"
    return Text.assemble(f"{letter}  ", (name_of(side.model_name), "bold"), (about, "dim"))


def _interval(bounds: tuple[float, float] | None) -> str:
    return MISSING if bounds is None else f"{signed(bounds[0])} to {signed(bounds[1])}"


def _finding(difference: ModelDifference) -> str:
    overall = difference.figures[0].difference
    if overall is None:
        return "No scenario has a score of both: there is nothing to compare."
    if not overall:
        return f"Both score the same over {counted(difference.scenarios, 'scenario')}."
    more, less = ("A", "B") if overall > 0 else ("B", "A")
    amount = signed(abs(overall)).lstrip("+")
    tested = f"{_p_value(difference.p_value)}, {counted(difference.scenarios, 'scenario')}"
    if difference.is_real:
        return f"{more} scores {amount} more than {less}, more than chance explains ({tested})."
    finding = f"{more} scores {amount} more than {less}, which may be chance ({tested})."
    needed = difference.scenarios_to_tell
    if needed is None or needed <= difference.scenarios:
        return finding
    if needed > MOST_TO_TELL:
        return f"{finding} More than {MOST_TO_TELL:,} scenarios like these would be needed to tell."
    return f"{finding} About {needed} scenarios like these would tell a difference of this size."


def _p_value(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
