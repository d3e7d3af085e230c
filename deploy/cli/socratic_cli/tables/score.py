"""The table that `socratic-bench score` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from socratic_bench.reporting.formats import figure
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display.terminal import excerpt, standard_output
from socratic_cli.transcripts import ScoredLine


def print_score_table(lines: Iterable[ScoredLine], vectors: Sequence[str]) -> list[str]:
    """Print one row per line and the means; returns the mistakes with their lines."""
    names = (*vectors, OVERALL)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("line", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("status")
    table.add_column("response", no_wrap=True)
    values: dict[str, list[float]] = {name: [] for name in names}
    problems = []
    for line in lines:
        figures = [line.figures.get(name) for name in names]
        for name, value in zip(names, figures, strict=True):
            if value is not None and line.scored:
                values[name].append(value)
        table.add_row(
            str(line.number),
            *(_in_words(line, name) for name in names),
            str(line.figures["status"]),
            Text(excerpt(line.text)),
        )
        if line.problem:
            problems.append(line.problem)
    if table.row_count > 1:
        table.add_section()
        means = (sum(column) / len(column) if column else None for column in values.values())
        counted = Text(f"mean of {len(values[OVERALL])} scored")
        table.add_row("", *(figure(mean) for mean in means), "", counted, style="bold")
    standard_output().print(table)
    return problems


def _in_words(line: ScoredLine, name: str) -> str:
    """Return a figure, with the profile's word for it below."""
    value = line.figures.get(name)
    facts = (line.figures.get("evidence") or {}).get("facts", {})
    word = facts.get(name, {}).get("word") if value is not None else None
    return f"{figure(value)}\n{word}" if word else figure(value)
