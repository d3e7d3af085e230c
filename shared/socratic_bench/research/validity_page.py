"""A validity report as one HTML page: it loads nothing and runs no script."""

from __future__ import annotations

from typing import Final

from socratic_bench.research.validity_report import ColumnFigures, LabelFigures, ValidityReport
from socratic_bench.results.pages.rendering import rendered
from socratic_bench.scoring.profile import OVERALL

ROW: Final = 20
GAP: Final = 12
"""Units of the plot between two columns, and besides between two labels."""


def validity_page(report: ValidityReport) -> str:
    """Return the page. Raises MissingExtra without Jinja."""
    plotted: list[tuple[int, LabelFigures, list[tuple[int, ColumnFigures]]]] = []
    y = 24
    for label in report.labels:
        names = [*(f"{profile} {OVERALL}" for profile in report.profiles), label.dimension]
        found = (label.column(name) for name in dict.fromkeys([*names, label.best_judge or ""]))
        columns = [(y + ROW * place, each) for place, each in enumerate(filter(None, found))]
        plotted.append((y, label, columns))
        y += ROW * len(columns) + GAP
    return rendered(
        "validity",
        "Validity report",
        report=report,
        overall=OVERALL,
        plotted=plotted,
        height=y + 16,
        x=_x,
    )


def _x(auc: float) -> float:
    """Return the place of an AUC; the axis begins at 0.3, and lower ones stand at its start."""
    return round(450 + (max(auc, 0.3) - 0.3) / 0.7 * 620, 1)
