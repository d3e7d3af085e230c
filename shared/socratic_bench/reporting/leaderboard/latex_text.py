"""The leaderboard as LaTeX: a table for a paper, with where its figures are from in the caption."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from socratic_bench.reporting.formats import printable
from socratic_bench.reporting.leaderboard.columns import shown_columns
from socratic_bench.reporting.leaderboard.comparison import ModelComparison
from socratic_bench.reporting.leaderboard.provenance import provenance, reading_aid, unanimity

_MARKUP: Final = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "\u2013": "--",
    "\u2265": r"$\geq$",
}


def comparison_latex(comparison: ModelComparison) -> str:
    """Return a `table` with one row a model, best first; it needs the package booktabs.

    Its columns are those of the command's table.
    """
    columns = shown_columns(comparison)
    caption = " ".join([*reading_aid(comparison), *unanimity(comparison), *provenance(comparison)])
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs} and \usepackage[T1]{fontenc}.",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{as_latex(caption)}}}",
            rf"\begin{{tabular}}{{{''.join(column.align[0] for column in columns)}}}",
            r"\toprule",
            _row(column.title for column in columns),
            r"\midrule",
            *(_row(column.text(model) for column in columns) for model in comparison.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_latex(text: str) -> str:
    """Escape what LaTeX would read as a command: a model's name is no command."""
    return "".join(_MARKUP.get(each, each) for each in printable(text))


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(map(as_latex, cells))} \\\\"
