"""The leaderboard as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from socratic_bench.results.formats import (
    MISSING,
    figure,
    interval,
    is_partial,
    moment,
    share,
)
from socratic_bench.results.leaderboard.columns import (
    Column,
    Drop,
    depends_on_weights,
    rank_text,
    shown_columns,
    turns_of,
)
from socratic_bench.results.leaderboard.figures import DimensionFigures, ModelFigures, TurnFigures
from socratic_bench.results.leaderboard.leaderboard import ModelComparison
from socratic_bench.results.leaderboard.prompt_effects import PromptEffect
from socratic_bench.results.leaderboard.text_formats import (
    BASELINE,
    OTHER_WEIGHTS,
    PROMPT_ALIGNS,
    SCALE,
    TIES,
    is_tied,
    prompt_basis,
    prompt_cells,
    prompt_headings,
    unanimity,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display import fitting
from socratic_cli.display.fitting import GAP, FittedTable, TableColumn, fitted_table
from socratic_cli.display.terminal import excerpt, name_of

REASON_WIDTH = 24
"""The greatest width of the reason for a missing score."""

BLOCK_CELL = len("0.00 to 0.00")
"""The widest figure in the block of a model."""

NAMED = 3
"""The most experiments named above the table."""

NOTES = 2_000
"""The most characters of the notes above the table, in all."""

_INTERVAL = "95 % interval"


def comparison_table(
    comparison: ModelComparison,
    *,
    detail: bool,
    width: int,
    reasons: Mapping[str, str] | None = None,
) -> RenderableType:
    """Make the table of models, best first; `detail` gives a block per model with every dimension
    and vector.

    `reasons` explains missing scores. A table wider than `width` shortens names and leaves columns
    out, and its last lines say so; it never cuts a figure.
    """
    table = _fitted(comparison, reasons or {}, width)
    blocks: list[RenderableType] = []
    if detail:
        blocks = [part for model in comparison.models for part in _block(model, comparison, width)]
    legend = _legend(comparison, table, detail=detail)
    lines = (Text(line, style="dim") for line in legend)
    prompts = _prompts(comparison.prompts, width)
    return Group(*_heading(comparison), table.table, *blocks, *prompts, *lines)


def _prompts(effects: Sequence[PromptEffect], width: int) -> Iterator[RenderableType]:
    """Show the effect of each prompt over the models of a matrix."""
    if not effects:
        return
    titles = [name_of(each, REASON_WIDTH) for each in prompt_headings(effects)]
    columns = [
        TableColumn(title, align, is_name=align == "left")
        for title, align in zip(titles, PROMPT_ALIGNS, strict=True)
    ]
    rows = []
    for each in effects:
        prompt, overall, *others = prompt_cells(each)
        rows.append([Text(name_of(prompt)), Text(overall, style="bold"), *map(Text, others)])
    yield Text()
    yield fitted_table(columns, rows, width=width).table
    yield Text(prompt_basis(effects), style="dim")


def growing_table(comparison: ModelComparison, width: int) -> Table:
    """Return the rows alone, for a leaderboard whose runs still come in."""
    return _fitted(comparison, {}, width).table


def _heading(comparison: ModelComparison) -> list[Text]:
    """Name the experiments of the table, with the notes of a single one."""
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


def _fitted(comparison: ModelComparison, reasons: Mapping[str, str], width: int) -> FittedTable:
    columns = shown_columns(comparison)
    return fitted_table(
        [
            fitting.TableColumn(
                name_of(each.heading),
                each.align,
                None if each.drop is Drop.NEVER else each.drop,
                each.is_name,
            )
            for each in columns
        ],
        [
            [_cell(column, model, reasons.get(model.model_id)) for column in columns]
            for model in comparison.rows
        ],
        width=width,
    )


def _cell(column: Column, model: ModelFigures, reason: str | None) -> Text:
    if column.heading == _INTERVAL and reason is not None:
        return Text(f"({name_of(reason, REASON_WIDTH - 2)})")
    text = name_of(column.text(model))
    if column.heading == OVERALL:
        return Text(text, style="bold")
    if column.heading == "kind":
        return Text(text if model.kind != "model" else "", style="dim italic")
    return Text(text)


def _block(
    model: ModelFigures, comparison: ModelComparison, width: int
) -> Iterator[RenderableType]:
    """Show every vector of one model, downwards, over all its runs, per dimension and per turn."""
    yield Text()
    yield Text(name_of(model.model_name, width), style="bold")
    names = (OVERALL, _INTERVAL, *comparison.vectors, "coverage", "runs")
    label = min(max(map(cell_len, names)), width - GAP - BLOCK_CELL - 2 * GAP)
    beside = max(1, (width - 2 - label) // (GAP + BLOCK_CELL))
    columns = [
        ("all", _of_model(model)),
        *_of_dimensions(model, comparison),
        *((f"turn {each.turn}", _of_turn(each)) for each in model.turns),
    ]
    for start in range(0, len(columns), beside):
        part = columns[start : start + beside]
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        table.add_column("", no_wrap=True, min_width=label + 2)
        for heading, _ in part:
            shown = name_of(heading, BLOCK_CELL)
            table.add_column(shown, justify="right", no_wrap=True, min_width=BLOCK_CELL)
        for name in names:
            cells = (figures.get(name, MISSING) for _, figures in part)
            table.add_row(f"  {name_of(name, label)}", *cells)
        yield table


def _of_model(model: ModelFigures) -> dict[str, str]:
    return {
        OVERALL: figure(model.overall_score),
        _INTERVAL: interval(model.confidence_interval),
        "coverage": share(model.coverage),
        "runs": f"{model.total_runs}/{model.planned_runs}",
        **{name: figure(vector.mean) for name, vector in model.vectors.items()},
    }


def _of_dimensions(
    model: ModelFigures, comparison: ModelComparison
) -> Sequence[tuple[str, dict[str, str]]]:
    return [
        (name, _of_dimension(model.dimensions[name]) if name in model.dimensions else {})
        for name in comparison.dimensions
    ]


def _of_dimension(figures: DimensionFigures) -> dict[str, str]:
    return {
        OVERALL: figure(figures.overall),
        _INTERVAL: interval(figures.interval),
        "coverage": share(figures.coverage),
        "runs": str(figures.runs),
        **{name: figure(mean) for name, mean in (figures.model_extra or {}).items()},
    }


def _of_turn(figures: TurnFigures) -> dict[str, str]:
    return {
        OVERALL: figure(figures.overall),
        _INTERVAL: interval(figures.interval),
        "coverage": share(figures.coverage),
        **{name: figure(mean) for name, mean in figures.vectors.items()},
    }


def _without_interval(models: Sequence[ModelFigures]) -> list[str]:
    """Say once why models have no interval."""
    return list(dict.fromkeys(each.interval_note for each in models if each.interval_note))


def _legend(comparison: ModelComparison, table: FittedTable, *, detail: bool) -> list[str]:
    models = comparison.models
    lines = ["", f"{SCALE}.", *unanimity(comparison)]
    if is_tied(comparison):
        lines.append(TIES)
    if depends_on_weights(comparison):
        lines.append(OTHER_WEIGHTS)
    lines += _without_interval(models)
    if any(model.kind == "reference" for model in models):
        simulated = any(m.kind == "reference" and m.total_cost_usd is not None for m in models)
        price = "; its cost is simulated" if simulated else ""
        lines.append(
            f"reference: a built-in archetype that shows the scale, not a real model{price}."
        )
    if comparison.baseline is not None:
        lines.append(BASELINE)
    if turns_of(comparison):
        aid = "" if detail else "; --detail shows each turn"
        lines.append(f"A run counts once, however many turns it has{aid}.")
    if any(model.coverage is not None and model.coverage < 1 for model in models):
        lines.append(
            "coverage: the share of responses with a score; the others do not count as zero."
        )
    if any(model.total_cost_usd is not None and is_partial(model.cost_known) for model in models):
        lines.append("cost: \u2265 if some costs are unknown, such as those of failed runs.")
    if not detail:
        lines += table.note("see --detail, or --format csv")
    lines += comparison.cautions
    return lines


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
    columns = [TableColumn("model", "left", is_name=True)]
    for comparison in comparisons:
        columns += [
            TableColumn("rank"),
            TableColumn(name_of(comparison.profile)),
            TableColumn("95 % interval", drop=0),
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
