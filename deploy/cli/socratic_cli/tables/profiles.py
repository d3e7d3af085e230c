"""The leaderboards of several profiles, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.reporting.formats import MISSING, figure, interval
from socratic_bench.reporting.leaderboard.columns import rank_text
from socratic_bench.reporting.leaderboard.comparison import ModelComparison
from socratic_bench.reporting.leaderboard.figures import ModelFigures
from socratic_cli.display.terminal import name_of
from socratic_cli.tables.fitting import Column, fitted_table

LEGEND = (
    "",
    "Under a profile's name stands `overall`; beside it, its interval and the possible ranks.",
    "Profiles have scales of their own: compare ranks, not figures, from one profile to another.",
    "socratic-bench compare-profiles says how far two profiles agree.",
)


def profiles_table(comparisons: Sequence[ModelComparison], *, width: int) -> RenderableType:
    """Make one table of the same models under each profile, in the order of the first one.

    A narrow terminal loses the intervals first.
    """
    columns = [Column("model", "left", is_name=True)]
    for comparison in comparisons:
        columns += [
            Column("rank"),
            Column(name_of(comparison.profile)),
            Column("95 % interval", drop=0),
        ]
    table = fitted_table(columns, list(_rows(comparisons)), width=width)
    filtered = [each.filtered.told for each in comparisons[:1] if each.filtered is not None]
    notes = (*LEGEND, *table.note("see --format json"), *filtered)
    lines = [Text(line, style="dim") for line in notes]
    return Group(table.table, *lines)


def _rows(comparisons: Sequence[ModelComparison]) -> Iterator[list[Text]]:
    others = [{_key(model): model for model in each.rows} for each in comparisons]
    for model in comparisons[0].rows:
        found = [other.get(_key(model)) for other in others]
        figures = [part for each in found for part in _figures(each)]
        yield [Text(name_of(model.model_name)), *figures]


def _key(model: ModelFigures) -> tuple[str, str | None]:
    return model.model_id, model.conditions_id


def _figures(model: ModelFigures | None) -> tuple[Text, Text, Text]:
    if model is None:
        return Text(MISSING), Text(MISSING), Text(MISSING)
    return (
        Text(rank_text(model)),
        Text(figure(model.overall_score), style="bold"),
        Text(interval(model.confidence_interval)),
    )
