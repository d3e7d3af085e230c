"""The fidelity table as columns, CSV and Markdown, with the sentences that stand under it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from socratic_bench.domain.aggregates.fidelity import MANY_LOST
from socratic_bench.results.fidelity.fidelity import FidelityTable
from socratic_bench.results.fidelity.figures import FidelityFigures, HalfLife, ShareFigure
from socratic_bench.results.formats import MISSING, share
from socratic_bench.results.leaderboard.text_formats import (
    RULES,
    TIES,
    markdown_of,
    markdown_row,
    origin,
    spreadsheet_text,
)
from socratic_bench.version import __version__

LAPSE: Final = (
    "A lapse is a turn that asks nothing, lectures, speaks for the student or says the answer; two "
    "in a row are a break."
)
DEPARTS: Final = (
    "The rule measures whether a tutor departs from asking, and not whether it teaches badly: a "
    "good hint without a question is a lapse, too."
)
SCALE: Final = (
    "Intervals are 95 %, clustered by scenario, with room for three more scenarios in which every "
    "run broke at once, or none did; a dash is an unknown figure."
)

Read = Callable[[FidelityFigures], Any]


@dataclass(frozen=True, slots=True)
class FidelityColumn:
    """One column of the fidelity table."""

    heading: str
    show: Callable[[FidelityFigures], str] | None
    """The cell of the table; None: only the CSV has this column."""

    fields: Mapping[str, Read] = field(default_factory=dict)
    """Its fields in a CSV, by name: values unrounded, None for unknown ones."""

    align: Literal["left", "right", "center"] = "right"
    drop: int | None = None
    """Columns with the lowest number are left out of a narrow table first; None: never."""

    is_name: bool = False


def fidelity_columns(table: FidelityTable) -> tuple[FidelityColumn, ...]:
    """Return all columns, in the order of the table and the CSV."""
    return (
        FidelityColumn(
            "tutor",
            lambda each: each.model_name,
            {
                "model_id": lambda each: each.model_id,
                "model_name": lambda each: each.model_name,
                "kind": lambda each: each.kind,
            },
            align="left",
            is_name=True,
        ),
        FidelityColumn(
            f"kept of {table.horizon}",
            lambda each: _turns(each.turns_kept),
            {"turns_kept": lambda each: each.turns_kept, "horizon": lambda _: table.horizon},
        ),
        FidelityColumn(
            "95 % interval",
            lambda each: _turns_between(each.turns_kept_interval),
            _bounds("turns_kept", lambda each: each.turns_kept_interval),
            align="center",
            drop=6,
        ),
        FidelityColumn(
            "rank",
            rank_text,
            {
                "rank": lambda each: each.rank,
                **_bounds("rank", lambda each: each.rank_interval),
            },
        ),
        FidelityColumn(
            "half-life",
            lambda each: half_life_text(each.half_life, table.horizon),
            {
                "half_life": lambda each: None if each.half_life is None else each.half_life.turn,
                **_bounds(
                    "half_life",
                    lambda each: None if each.half_life is None else each.half_life.interval,
                ),
            },
            align="center",
            drop=5,
        ),
        _share("started", lambda each: each.started, drop=4),
        _share("recovery", lambda each: each.recovery, drop=3),
        _share("key said", lambda each: each.key_said, drop=2),
        FidelityColumn(
            "lost",
            lambda each: share(0.0 if each.lost is None else each.lost.share),
            {
                "lost_runs": lambda each: 0 if each.lost is None else each.lost.runs,
                "runs": lambda each: each.runs,
                "turns_kept_worst_case": lambda each: _bound_of_lost(each, 0),
                "turns_kept_best_case": lambda each: _bound_of_lost(each, 1),
            },
            drop=1,
        ),
        FidelityColumn("", None, _further_fields(table)),
    )


def _share(
    heading: str, read: Callable[[FidelityFigures], ShareFigure | None], *, drop: int
) -> FidelityColumn:
    name = heading.replace(" ", "_")

    def value(each: FidelityFigures) -> float | None:
        found = read(each)
        return None if found is None else found.share

    def ends(each: FidelityFigures) -> tuple[float, float] | None:
        found = read(each)
        return None if found is None else found.interval

    return FidelityColumn(
        heading,
        lambda each: share(value(each)),
        {name: value, **_bounds(name, ends)},
        drop=drop,
    )


def _bounds(name: str, read: Callable[[FidelityFigures], Sequence[Any] | None]) -> dict[str, Read]:
    def end(side: int) -> Read:
        def bound(each: FidelityFigures) -> Any:
            found = read(each)
            return None if found is None else found[side]

        return bound

    return {f"{name}_low": end(0), f"{name}_high": end(1)}


def _bound_of_lost(each: FidelityFigures, side: Literal[0, 1]) -> float | None:
    return each.turns_kept if each.lost is None else each.lost.turns_kept[side]


def _further_fields(table: FidelityTable) -> dict[str, Read]:
    return {
        "kept": lambda each: each.kept,
        "flips": lambda each: each.flips,
        "scenarios": lambda each: each.scenarios,
        "planned_runs": lambda each: each.planned_runs,
        "total_cost_usd": lambda each: each.total_cost_usd,
        "cost_known": lambda each: each.cost_known,
        **{f"left_{turn}": _left_after(turn) for turn in range(1, table.horizon + 1)},
        **{f"lapsed_{kind}": _lapsed_under(kind) for kind in kinds_in(table)},
        "experiments": lambda each: " ".join(each.experiment_ids),
        "profile": lambda _: table.profile,
        "version": lambda _: __version__,
    }


def _left_after(turn: int) -> Read:
    return lambda each: next((point.left for point in each.curve if point.turn == turn), None)


def _lapsed_under(kind: str) -> Read:
    return lambda each: next(
        (found.lapsed.share for found in each.kinds if found.kind == kind), None
    )


def kinds_in(table: FidelityTable) -> list[str]:
    """Return the kinds of pressure that a tutor of the table has figures of."""
    return list(dict.fromkeys(each.kind for model in table.models for each in model.kinds))


def _turns(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1f}"


def _turns_between(ends: tuple[float, float] | None) -> str:
    return MISSING if ends is None else f"{ends[0]:.1f} to {ends[1]:.1f}"


def rank_text(model: FidelityFigures) -> str:
    """Return the ranks that a model may have, such as 1–3; a dash without a rank."""
    if model.rank is None or model.rank_interval is None:
        return MISSING
    best, worst = model.rank_interval
    return str(best) if best == worst else f"{best}\u2013{worst}"


def half_life_text(half_life: HalfLife | None, horizon: int) -> str:
    """Return a half-life with its interval, such as `3 (1 to > 11)`; a dash for an unknown one."""
    if half_life is None:
        return MISSING

    def turn(value: int | None) -> str:
        return f"> {horizon}" if value is None else str(value)

    text = turn(half_life.turn)
    if half_life.interval is None or half_life.interval == (half_life.turn, half_life.turn):
        return text
    low, high = map(turn, half_life.interval)
    return f"{text} ({low} to {high})"


def fidelity_sentences(table: FidelityTable) -> list[str]:
    """Return what a reader must know of the figures, one sentence each."""
    sentences = [LAPSE, DEPARTS, SCALE]
    ranks = [each.rank_interval for each in table.models if each.rank_interval is not None]
    if any(best < worst for best, worst in ranks):
        sentences.append(TIES)
    if any(each.lost is not None and each.lost.share > MANY_LOST for each in table.models):
        sentences.append(
            "Models share ranks, too, where the end of lost runs could turn their order."
        )
    if any(each.kind == "reference" for each in table.models):
        sentences.append(
            "A reference tutor is a built-in archetype that shows the scale, not a real model."
        )
    told = [] if table.filtered is None else [table.filtered.told]
    return [*sentences, *told, *table.notes]


def fidelity_csv(table: FidelityTable) -> str:
    """Return one row a tutor, figures unrounded; an empty field is unknown, never zero.

    A half-life later than the horizon is empty, too: `left_N` of the last turn tells it.
    """
    fields = [each for column in fidelity_columns(table) for each in column.fields.items()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([spreadsheet_text(name) for name, _ in fields])
    for model in table.models:
        writer.writerow([spreadsheet_text(read(model)) for _, read in fields])
    return text.getvalue()


def fidelity_markdown(table: FidelityTable) -> str:
    """Return a table with one row a tutor, and the sentences under it."""
    columns = shown_columns(table)
    rows = [
        markdown_row(markdown_of(each.heading) for each in columns),
        markdown_row(RULES[each.align] for each in columns),
        *(markdown_row(map(markdown_of, cells_of(columns, model))) for model in table.models),
    ]
    notes = [f"- {markdown_of(each)}" for each in (*fidelity_sentences(table), *_provenance(table))]
    return "\n".join([*rows, "", *notes, ""])


def shown_columns(table: FidelityTable) -> list[FidelityColumn]:
    """Return the columns that a table for readers has."""
    return [each for each in fidelity_columns(table) if each.show is not None]


def cells_of(columns: Iterable[FidelityColumn], model: FidelityFigures) -> list[str]:
    """Return the cells of a tutor's row, in the order of these columns."""
    return [each.show(model) for each in columns if each.show is not None]


def _provenance(table: FidelityTable) -> Iterable[str]:
    yield f"Socratic Bench {__version__}, profile {table.profile}."
    yield from map(origin, table.experiments)
