"""The table that `socratic-bench score` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from socratic_bench.reporting.formats import figure
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display.terminal import excerpt, standard_output
from socratic_cli.tables.fitting import Column, FittingTable
from socratic_cli.transcripts import ScoredLine


def print_score_table(lines: Iterable[ScoredLine], vectors: Sequence[str]) -> list[str]:
    """Print one row per line and the means; returns the mistakes with their lines."""
    names = (*vectors, OVERALL)
    rows: list[list[str | Text]] = []
    values: dict[str, list[float]] = {name: [] for name in names}
    problems = []
    for line in lines:
        figures = [line.figures.get(name) for name in names]
        for name, value in zip(names, figures, strict=True):
            if value is not None and line.scored:
                values[name].append(value)
        rows.append(
            [
                str(line.number),
                *(_in_words(line, name) for name in names),
                str(line.figures["status"]),
                excerpt(line.text),
            ]
        )
        if line.problem:
            problems.append(line.problem)
    if len(rows) > 1:
        means = [sum(column) / len(column) if column else None for column in values.values()]
        counted = f"of {len(values[OVERALL])} scored"
        last = ["mean", *(figure(mean) for mean in means), "", counted]
        rows.append([Text(cell, "bold") for cell in last])
    standard_output().print(FittingTable(_columns(vectors), rows, "see --format jsonl"))
    return problems


def _columns(vectors: Sequence[str]) -> list[Column]:
    """Return the columns; the last vectors are left out first where the terminal is narrow."""
    return [
        Column("line"),
        *(Column(name, drop=len(vectors) - place) for place, name in enumerate(vectors)),
        Column(OVERALL),
        Column("status", "left"),
        Column("response", "left", is_name=True),
    ]


def _in_words(line: ScoredLine, name: str) -> str:
    """Return a figure, with the profile's word for it below."""
    value = line.figures.get(name)
    facts = (line.figures.get("evidence") or {}).get("facts", {})
    word = facts.get(name, {}).get("word") if value is not None else None
    return f"{figure(value)}\n{word}" if word else figure(value)
