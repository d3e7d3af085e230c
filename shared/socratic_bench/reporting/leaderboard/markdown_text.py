"""The leaderboard as Markdown: a table, and below it where its figures are from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from socratic_bench.reporting.formats import printable
from socratic_bench.reporting.leaderboard.columns import shown_columns
from socratic_bench.reporting.leaderboard.comparison import ModelComparison
from socratic_bench.reporting.leaderboard.provenance import provenance, reading_aid, unanimity

RULES: Final = {"left": ":---", "right": "---:", "center": ":---:"}

_MARKUP: Final = {
    **{each: f"\\{each}" for each in "\\`*_[]{}~!#"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "|": "&#124;",
}


def comparison_markdown(comparison: ModelComparison) -> str:
    """Return a table with one row a model, best first, with the columns of the command's table."""
    columns = shown_columns(comparison)
    rows = [
        markdown_row(map(markdown_of, (column.title for column in columns))),
        markdown_row(RULES[column.align] for column in columns),
        *(
            markdown_row(markdown_of(column.text(model)) for column in columns)
            for model in comparison.rows
        ),
    ]
    notes = [
        markdown_of(each)
        for each in (*reading_aid(comparison), *unanimity(comparison), *provenance(comparison))
    ]
    return "\n".join([*rows, "", *(f"- {note}" for note in notes), ""])


def markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_of(text: str) -> str:
    """Escape what Markdown or HTML would read as markup: a model's name is no markup."""
    return "".join(_MARKUP.get(each, each) for each in printable(text))
