"""The leaderboard as CSV: the command and the API give the same bytes."""

from __future__ import annotations

import csv
import io
from typing import Final

from socratic_bench.reporting.leaderboard.columns import leaderboard_columns
from socratic_bench.reporting.leaderboard.comparison import ModelComparison

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of a text that a spreadsheet reads as a formula."""


def comparison_csv(comparison: ModelComparison) -> str:
    """Return one row a model, scores unrounded; an empty field is unknown, never zero."""
    fields = [
        field for column in leaderboard_columns(comparison) for field in column.fields.items()
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([spreadsheet_text(name) for name, _ in fields])
    for model in comparison.models:
        writer.writerow([spreadsheet_text(read(model)) for _, read in fields])
    return text.getvalue()


def spreadsheet_text(value: object) -> object:
    """Quote a name that a spreadsheet would execute as code."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
