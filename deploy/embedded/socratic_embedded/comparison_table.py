"""The leaderboard as a table for people, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from socratic_bench.reporting.comparison import DimensionFigures, ModelComparison, ModelFigures
from socratic_bench.scoring.profile import OVERALL
from socratic_embedded.terminal import MISSING, figure, share


def comparison_table(comparison: ModelComparison, *, detail: bool) -> RenderableType:
    """The models, best first; with `detail`, every dimension and vector below each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", justify="right")
    table.add_column("model", no_wrap=True)
    table.add_column(OVERALL, justify="right")
    table.add_column("95 % interval", justify="center", no_wrap=True)
    for name in (*comparison.dimensions, *comparison.vectors):
        table.add_column(name, justify="right")
    table.add_column("coverage", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for rank, model in enumerate(comparison.models, start=1):
        _add_model(table, rank, model, comparison)
        if detail:
            for dimension, figures in model.dimensions.items():
                _add_dimension(table, dimension, figures, comparison)
    return Group(table, *(Text(line, style="dim") for line in _legend(comparison)))


def _add_model(table: Table, rank: int, model: ModelFigures, comparison: ModelComparison) -> None:
    name = Text(model.model_name)
    if model.kind == "reference":
        name.append("  reference", style="dim italic")
    if model.simulated_latency_ms:
        name.append(f"  simulated {model.simulated_latency_ms} ms", style="dim italic")
    scored = model.overall_score is not None
    table.add_row(
        str(rank) if scored else MISSING,
        name,
        Text(figure(model.overall_score), style="bold"),
        interval(model.confidence_interval),
        *(
            figure(model.dimensions[each].overall) if each in model.dimensions else MISSING
            for each in comparison.dimensions
        ),
        *(figure(model.vectors[vector].mean) for vector in comparison.vectors),
        share(model.coverage),
        f"{model.total_runs}/{model.planned_runs}",
    )


def _add_dimension(
    table: Table, dimension: str, figures: DimensionFigures, comparison: ModelComparison
) -> None:
    means = figures.model_extra or {}
    table.add_row(
        "",
        f"  {dimension}",
        figure(figures.overall),
        interval(figures.interval),
        *("" for _ in comparison.dimensions),
        *(figure(means.get(vector)) for vector in comparison.vectors),
        share(figures.coverage),
        str(figures.runs),
        style="dim",
    )


def interval(bounds: tuple[float, float] | None) -> str:
    """An interval to hundredths; a dash where there is none."""
    return MISSING if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"


def _legend(comparison: ModelComparison) -> list[str]:
    lines = ["", "Scores run from 0.00 to 1.00; intervals are clustered by scenario."]
    if any(model.kind == "reference" for model in comparison.models):
        lines.append("reference: a built-in archetype that shows the scale, not a real model.")
    if any(model.coverage is not None and model.coverage < 1 for model in comparison.models):
        lines.append("coverage: the share of responses that have a score; the rest is not zero.")
    if comparison.note:
        lines.append(comparison.note)
    return lines


def comparison_csv(comparison: ModelComparison) -> str:
    """One row a model, scores unrounded; an empty field is unknown, never zero."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_csv_header(comparison))
    for rank, model in enumerate(comparison.models, start=1):
        writer.writerow([_csv_field(value) for value in _csv_row(rank, model, comparison)])
    return text.getvalue()


def _csv_header(comparison: ModelComparison) -> list[str]:
    return [
        *("rank", "model_id", "model_name", "kind", "overall", "interval_low", "interval_high"),
        *("coverage", "total_runs", "planned_runs", "scored_responses"),
        *comparison.vectors,
        *(
            f"{dimension}_{name}"
            for dimension in comparison.dimensions
            for name in (OVERALL, *comparison.vectors)
        ),
    ]


def _csv_row(rank: int, model: ModelFigures, comparison: ModelComparison) -> Sequence[object]:
    low, high = model.confidence_interval or (None, None)
    by_dimension: list[object] = []
    for dimension in comparison.dimensions:
        figures = model.dimensions.get(dimension)
        means = {} if figures is None else (figures.model_extra or {})
        by_dimension.append(None if figures is None else figures.overall)
        by_dimension += [means.get(vector) for vector in comparison.vectors]
    return [
        rank if model.overall_score is not None else None,
        *(model.model_id, model.model_name, model.kind, model.overall_score, low, high),
        *(model.coverage, model.total_runs, model.planned_runs, model.scored_responses),
        *(model.vectors[vector].mean for vector in comparison.vectors),
        *by_dimension,
    ]


def _csv_field(value: object) -> object:
    """Text that a spreadsheet would take for a formula is quoted: it is a name, not code."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
