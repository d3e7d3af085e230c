"""The columns of the leaderboard: one list for the command's table and for every CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, Literal

from socratic_bench.errors import InvalidInput
from socratic_bench.results.formats import MISSING, cost, figure, interval, share
from socratic_bench.results.leaderboard.figures import ModelFigures, TurnFigures
from socratic_bench.results.leaderboard.leaderboard import (
    ExperimentSummary,
    Filtered,
    ModelComparison,
)
from socratic_bench.results.leaderboard.places import OtherWeights
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

Read = Callable[[ModelFigures], Any]


class Drop(IntEnum):
    """The order in which a narrow table leaves out columns, the lowest number first."""

    SIMULATED_LATENCY = 1
    DIMENSIONS = 2
    VECTORS = 3
    OTHER_WEIGHTS = 4
    COST = 5
    RUNS = 6
    KIND = 7
    COVERAGE = 8
    INTERVAL = 9
    NEVER = 10


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the leaderboard."""

    fields: Mapping[str, Read]
    """Its fields in a CSV, by name: values unrounded, None for unknown ones."""

    heading: str = ""
    show: Callable[[ModelFigures], str] | None = None
    """The cell of the table; None: only the CSV has this column."""

    align: Literal["left", "right", "center"] = "right"
    drop: Drop = Drop.NEVER
    is_name: bool = False
    """Whether the cell is a name, which a narrow table may shorten. It never shortens figures."""

    shown_if: Callable[[ModelFigures], bool] = field(default=lambda _: True)
    """A table shows the column if this holds for a model."""

    @property
    def title(self) -> str:
        """The heading outside the terminal, where a column without one has its field's name."""
        return self.heading or next(iter(self.fields))

    def text(self, model: ModelFigures) -> str:
        """Return the cell of a table; empty where only the CSV has this column."""
        return "" if self.show is None else self.show(model)


def leaderboard_columns(comparison: ModelComparison) -> tuple[Column, ...]:
    """Return all columns, in the order of tables and CSVs."""
    return (
        *_identity(comparison),
        *_totals(comparison),
        *(_vector(name) for name in comparison.vectors),
        *(_dimension(name, comparison.vectors) for name in comparison.dimensions),
        *(_turn(turn, comparison.vectors) for turn in turns_of(comparison)),
        *_consumption(),
        *_provenance(comparison),
    )


def shown_columns(comparison: ModelComparison) -> list[Column]:
    """Return the columns of a table with room for all of them."""
    return [
        column
        for column in leaderboard_columns(comparison)
        if column.show is not None and any(map(column.shown_if, comparison.rows))
    ]


def named_columns(comparison: ModelComparison, headings: Sequence[str]) -> list[Column]:
    """Return the columns with these headings, in this order; all of a table's without a heading.

    The model comes first where it is not named. Raises InvalidInput for an unknown heading.
    """
    shown = shown_columns(comparison)
    if not headings:
        return shown
    by_title = {each.title.casefold(): each for each in shown}
    if unknown := [each for each in headings if each.casefold() not in by_title]:
        raise InvalidInput(
            f"this table has no column {unknown[0]!r}; it has "
            f"{', '.join(each.title for each in shown)}"
        )
    named = list(dict.fromkeys(each.casefold() for each in headings))
    return [by_title[each] for each in (named if "model" in named else ["model", *named])]


def _identity(comparison: ModelComparison) -> Sequence[Column]:
    titles = {
        each.experiment_id: each.name or each.occasion or each.experiment_id
        for each in comparison.experiments
    }

    def experiment_of(model: ModelFigures) -> str:
        return titles.get(model.experiment_ids[0], "") if model.experiment_ids else ""

    return (
        Column(
            {"rank": lambda model: model.rank},
            show=rank_text,
        ),
        Column(
            {
                "model_id": lambda model: model.model_id,
                "model_name": lambda model: model.model_name,
            },
            "model",
            lambda model: model.model_name,
            align="left",
            is_name=True,
        ),
        Column(
            {},
            "experiment",
            experiment_of,
            align="left",
            is_name=True,
            shown_if=lambda model: comparison.mixed_conditions and bool(model.experiment_ids),
        ),
        Column(
            {"kind": lambda model: model.kind},
            "kind",
            lambda model: model.kind,
            align="left",
            drop=Drop.KIND,
            shown_if=lambda model: model.kind == "reference",
        ),
        Column(
            {},
            "simulated",
            lambda model: f"{model.simulated_latency_ms} ms" if model.simulated_latency_ms else "",
            drop=Drop.SIMULATED_LATENCY,
            shown_if=lambda model: model.simulated_latency_ms > 0,
        ),
    )


def rank_text(model: ModelFigures) -> str:
    """Return the ranks that a model may have, such as 1–3; a dash without a rank."""
    if model.rank is None:
        return MISSING
    best, worst = model.rank_interval or (model.rank, model.rank)
    return str(best) if best == worst else f"{best}\u2013{worst}"


def _totals(comparison: ModelComparison) -> Sequence[Column]:
    return (
        Column(
            {OVERALL: lambda model: model.overall_score},
            OVERALL,
            lambda model: figure(model.overall_score),
        ),
        Column(
            {
                "interval_low": lambda model: _bound(model, 0),
                "interval_high": lambda model: _bound(model, 1),
            },
            "95 % interval",
            lambda model: interval(model.confidence_interval),
            align="center",
            drop=Drop.INTERVAL,
        ),
        Column(
            {"coverage": lambda model: model.coverage},
            "coverage",
            lambda model: share(model.coverage),
            drop=Drop.COVERAGE,
        ),
        Column(
            {
                "total_runs": lambda model: model.total_runs,
                "planned_runs": lambda model: model.planned_runs,
                "scored_responses": lambda model: model.scored_responses,
            },
            "runs",
            lambda model: (
                MISSING if model.kind == "baseline" else f"{model.total_runs}/{model.planned_runs}"
            ),
            drop=Drop.RUNS,
        ),
        _other_weights(comparison),
        Column(
            {
                "rank_low": lambda model: model.rank_interval and model.rank_interval[0],
                "rank_high": lambda model: model.rank_interval and model.rank_interval[1],
            }
        ),
    )


def _other_weights(comparison: ModelComparison) -> Column:
    """Make the column of the places under other weights, which a table shows where an order depends
    on the weights.
    """
    is_shown = depends_on_weights(comparison)
    return Column(
        {
            "share_ahead": _of_weights(lambda weights: weights.share_ahead),
            "weights_rank_low": _of_weights(lambda weights: weights.rank_range[0]),
            "weights_rank_high": _of_weights(lambda weights: weights.rank_range[1]),
        },
        "other weights",
        lambda model: "" if model.other_weights is None else weights_text(model.other_weights),
        drop=Drop.OTHER_WEIGHTS,
        shown_if=lambda _: is_shown,
    )


def depends_on_weights(comparison: ModelComparison) -> bool:
    """Whether the order of two neighbours depends on the weights of the vectors."""
    known = (model.other_weights for model in comparison.models)
    return any(weights is not None and not weights.is_steady for weights in known)


def _of_weights(read: Callable[[OtherWeights], Any]) -> Read:
    return lambda model: None if model.other_weights is None else read(model.other_weights)


def weights_text(weights: OtherWeights) -> str:
    """Return the share of weightings and the ranks under them, such as `71 %, 1–3`."""
    best, worst = weights.rank_range
    ranks = str(best) if best == worst else f"{best}\u2013{worst}"
    return f"{weights.share_text}, {ranks}"


def _bound(model: ModelFigures, which: Literal[0, 1]) -> float | None:
    return None if model.confidence_interval is None else model.confidence_interval[which]


def _vector(name: str) -> Column:
    return Column(
        {name: lambda model: model.vectors[name].mean},
        name,
        lambda model: figure(model.vectors[name].mean),
        drop=Drop.VECTORS,
    )


def _dimension(name: str, vectors: Sequence[str]) -> Column:
    def overall(model: ModelFigures) -> float | None:
        figures = model.dimensions.get(name)
        return None if figures is None else figures.overall

    def mean_of(vector: str) -> Read:
        def mean(model: ModelFigures) -> float | None:
            figures = model.dimensions.get(name)
            return None if figures is None else (figures.model_extra or {}).get(vector)

        return mean

    return Column(
        {
            f"{name}_{OVERALL}": overall,
            **{f"{name}_{vector}": mean_of(vector) for vector in vectors},
        },
        name,
        lambda model: figure(overall(model)),
        drop=Drop.DIMENSIONS,
    )


def turns_of(comparison: ModelComparison) -> Sequence[int]:
    """Return the turns of the table's runs; none where every run has one."""
    return sorted({each.turn for model in comparison.models for each in model.turns})


def _turn(turn: int, vectors: Sequence[str]) -> Column:
    """A turn's figures, which only a CSV has: a block of `--detail` shows them to people."""

    def of_turn(read: Callable[[TurnFigures], Any]) -> Read:
        return lambda model: next((read(each) for each in model.turns if each.turn == turn), None)

    return Column(
        {
            f"turn_{turn}_{OVERALL}": of_turn(lambda each: each.overall),
            f"turn_{turn}_coverage": of_turn(lambda each: each.coverage),
            f"turn_{turn}_scored_responses": of_turn(lambda each: each.scored_responses),
            **{
                f"turn_{turn}_{vector}": of_turn(partial(_vector_of_turn, vector))
                for vector in vectors
            },
        }
    )


def _vector_of_turn(vector: str, turn: TurnFigures) -> float | None:
    return turn.vectors.get(vector)


def _consumption() -> Sequence[Column]:
    return (
        Column(
            {
                "total_cost_usd": lambda model: model.total_cost_usd,
                "cost_known": lambda model: model.cost_known,
            },
            "cost",
            lambda model: cost(model.total_cost_usd, model.cost_known),
            drop=Drop.COST,
            shown_if=lambda model: model.total_cost_usd is not None,
        ),
        Column(
            {
                "total_input_tokens": lambda model: model.total_input_tokens,
                "total_visible_output_tokens": lambda model: model.total_visible_output_tokens,
                "total_reasoning_tokens": lambda model: model.total_reasoning_tokens,
                "mean_latency_ms": lambda model: model.mean_latency_ms,
            }
        ),
    )


def _provenance(comparison: ModelComparison) -> Sequence[Column]:
    """The provenance of a row, for citations; a row of several experiments names each."""
    summaries = {each.experiment_id: each for each in comparison.experiments}

    def of_each(read: Callable[[ExperimentSummary], str | None]) -> Read:
        def joined(model: ModelFigures) -> str:
            found = (summaries[each] for each in model.experiment_ids if each in summaries)
            return " ".join(dict.fromkeys(filter(None, map(read, found))))

        return joined

    return (
        Column(
            {
                "experiments": lambda model: " ".join(model.experiment_ids),
                "occasion": of_each(lambda each: each.occasion),
                "created_at": of_each(lambda each: each.created_at.isoformat()),
                "conditions": of_each(lambda each: each.conditions_id),
                "profile": lambda _: comparison.profile,
                "version": lambda _: __version__,
            }
        ),
        Column({f"{name}_runs": _runs_of(name) for name in comparison.dimensions}),
        Column({"notes": _notes}),
        *_filter(comparison.filtered),
    )


def _notes(model: ModelFigures) -> str:
    """Return what a reader has to know about the answers, `; ` between notes."""
    return "; ".join(f"{note.told}: {note.detail}" for note in model.notes)


def _filter(filtered: Filtered | None) -> Sequence[Column]:
    """A filtered CSV says so in every row: it stands alone."""
    return () if filtered is None else (Column({"filter": lambda _: filtered.told}),)


def _runs_of(dimension: str) -> Read:
    def runs(model: ModelFigures) -> int | None:
        figures = model.dimensions.get(dimension)
        return None if figures is None else figures.runs

    return runs
