"""The leaderboard as a table for people, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from socratic_bench.reporting.comparison import DimensionFigures, ModelComparison, ModelFigures
from socratic_bench.reporting.costs import dollars
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display.terminal import MISSING, excerpt, figure, moment, share

NAME_WIDTH = 16
"""Characters: before names are folded to fewer, whole columns of figures are left out."""

GAP = 2
"""Characters between two columns."""

NAMED = 3
"""Experiments whose names stand above the table."""

NOTES = 2_000
"""Characters of the notes above the table: all of them."""

_CONSUMPTION = (
    "total_cost_usd",
    "cost_known",
    "total_input_tokens",
    "total_visible_output_tokens",
    "total_reasoning_tokens",
    "mean_latency_ms",
)
"""What responses took: the last columns of the CSV."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns fit beside the names of the models."""

    dimensions: tuple[str, ...]
    vectors: tuple[str, ...]
    cost: bool
    """Whether any model has a known cost."""

    left_out: tuple[str, ...]
    """Those for which the terminal is too narrow."""


def comparison_table(
    comparison: ModelComparison,
    *,
    detail: bool,
    width: int,
    reasons: Mapping[str, str] | None = None,
) -> RenderableType:
    """The models, best first; with `detail`, every dimension and vector below each.

    `reasons` says of models why they have no score. Figures are never cut: in a `width` that is too
    narrow, names are folded, and the vectors are left out, and then the dimensions, which the last
    lines say.
    """
    reasons = {model_id: f"({excerpt(why)})" for model_id, why in (reasons or {}).items()}
    columns = _columns(comparison, reasons, detail=detail, width=width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("model", overflow="fold")
    table.add_column(OVERALL, justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    for name in (*columns.dimensions, *columns.vectors):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("coverage", "runs", *(["cost"] if columns.cost else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for rank, model in enumerate(comparison.models, start=1):
        table.add_row(*_model_cells(rank, model, columns, reasons.get(model.model_id)))
        if detail:
            for dimension, figures in model.dimensions.items():
                table.add_row(*_dimension_cells(dimension, figures, columns), style="dim")
    legend = (Text(line, style="dim") for line in _legend(comparison, columns))
    return Group(*_heading(comparison), table, *legend)


def _heading(comparison: ModelComparison) -> list[Text]:
    """The names of the experiments in the table, with the notes of a single one."""
    named = [each for each in comparison.experiments if each.name is not None]
    lines = [
        Text.assemble(
            (excerpt(each.name or ""), "bold"),
            (f"  {moment(each.created_at)}  {each.experiment_id}", "dim"),
        )
        for each in named[:NAMED]
    ]
    if more := len(named) - NAMED:
        lines += [Text(f"… and {more} more", style="dim")] if more > 0 else []
    if len(comparison.experiments) == 1 and comparison.experiments[0].notes is not None:
        lines.append(Text(excerpt(comparison.experiments[0].notes, NOTES)))
    return [*lines, Text()] if lines else []


def _columns(
    comparison: ModelComparison, reasons: Mapping[str, str], *, detail: bool, width: int
) -> _Columns:
    """As many columns as leave `NAME_WIDTH` for the names. With `detail` vectors come first, since
    every dimension has a row.
    """
    models = comparison.models
    costs = any(model.total_cost_usd is not None for model in models)
    taken = [
        len(str(len(models))),
        min(NAME_WIDTH, _longest(_model_name(model).cell_len for model in models)),
        *(len(header) for header in (OVERALL, "coverage")),
        max(map(len, ("95 % interval", *reasons.values()))),
        _longest(len(_runs(model)) for model in models),
        *([_longest(len(_cost(model)) for model in models)] if costs else []),
    ]
    room = width - sum(taken) - GAP * (len(taken) - 1)
    groups = {"dimensions": comparison.dimensions, "vectors": comparison.vectors}
    left_out: list[str] = []
    for group in reversed(groups) if detail else list(groups):
        room -= sum(max(len(name), len("0.00")) + GAP for name in groups[group])
        if room < 0:
            left_out += groups[group]
            groups[group] = ()
    return _Columns(**groups, cost=costs, left_out=tuple(left_out))


def _longest(lengths: Iterable[int]) -> int:
    return max(len("runs"), *lengths)


def _model_name(model: ModelFigures) -> Text:
    name = Text(excerpt(model.model_name))
    if model.kind == "reference":
        name.append("  reference", style="dim italic")
    if model.simulated_latency_ms:
        name.append(f"  simulated {model.simulated_latency_ms} ms", style="dim italic")
    return name


def _runs(model: ModelFigures) -> str:
    return f"{model.total_runs}/{model.planned_runs}"


def _cost(model: ModelFigures) -> str:
    return cost(model.total_cost_usd, model.cost_known)


def _model_cells(
    rank: int, model: ModelFigures, columns: _Columns, reason: str | None
) -> list[str | Text]:
    scored = model.overall_score is not None
    return [
        str(rank) if scored else MISSING,
        _model_name(model),
        Text(figure(model.overall_score), style="bold"),
        interval(model.confidence_interval) if reason is None else reason,
        *(
            figure(model.dimensions[each].overall) if each in model.dimensions else MISSING
            for each in columns.dimensions
        ),
        *(figure(model.vectors[vector].mean) for vector in columns.vectors),
        share(model.coverage),
        _runs(model),
        *([_cost(model)] if columns.cost else []),
    ]


def _dimension_cells(dimension: str, figures: DimensionFigures, columns: _Columns) -> list[str]:
    means = figures.model_extra or {}
    return [
        "",
        f"  {excerpt(dimension)}",
        figure(figures.overall),
        interval(figures.interval),
        *("" for _ in columns.dimensions),
        *(figure(means.get(vector)) for vector in columns.vectors),
        share(figures.coverage),
        str(figures.runs),
        *([""] if columns.cost else []),
    ]


def cost(total_usd: float | None, known: float | None) -> str:
    """What responses cost, of which a share is `known`; a dash where nothing is."""
    if total_usd is None:
        return MISSING
    return dollars(total_usd, at_least=_is_partial(known))


def _is_partial(known: float | None) -> bool:
    return known is not None and known < 1


def interval(bounds: tuple[float, float] | None) -> str:
    """An interval to hundredths; a dash where there is none."""
    return MISSING if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"


def _legend(comparison: ModelComparison, columns: _Columns) -> list[str]:
    models = comparison.models
    lines = ["", "Scores run from 0.00 to 1.00; intervals are clustered by scenario."]
    if any(model.kind == "reference" for model in models):
        simulated = any(m.kind == "reference" and m.total_cost_usd is not None for m in models)
        price = "; its cost is simulated" if simulated else ""
        lines.append(
            f"reference: a built-in archetype that shows the scale, not a real model{price}."
        )
    if any(model.coverage is not None and model.coverage < 1 for model in models):
        lines.append("coverage: the share of responses that have a score; the rest is not zero.")
    if any(model.total_cost_usd is not None and _is_partial(model.cost_known) for model in models):
        lines.append("cost: \u2265 where that of some responses is unknown, as of failed runs.")
    if columns.left_out:
        lines.append(f"Too narrow for {', '.join(columns.left_out)}: see --format csv or json.")
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
        *_CONSUMPTION,
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
        *(getattr(model, name) for name in _CONSUMPTION),
    ]


def _csv_field(value: object) -> object:
    """Text that a spreadsheet would take for a formula is quoted: it is a name, not code."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
