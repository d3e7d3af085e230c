"""The figures of one row of the leaderboard, as JSON has them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.aggregates.leaderboard import (
    Consumption,
    Leaderboard,
    ModelRow,
    Standing,
)
from socratic_bench.domain.aggregates.statistics import MeanEstimate
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.providers.registry import is_reference, simulated_latency_ms
from socratic_bench.results.costs import known_share, total, total_usd
from socratic_bench.results.formats import share
from socratic_bench.results.interval_steps import scenarios_missing
from socratic_bench.results.leaderboard.answer_sentences import AnswerNote, notes_of
from socratic_bench.results.leaderboard.baseline import BASELINE_ID, BASELINE_NAME, Baseline
from socratic_bench.results.leaderboard.places import OtherWeights, Place
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import yes_or_no_vectors

Interval = tuple[float, float]


class VectorFigure(BaseModel):
    """One vector over all of a model's scored responses."""

    model_config = ConfigDict(frozen=True)

    mean: float | None
    """0.0 to 1.0, unrounded; null without a scored response."""

    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    n: int
    """Scored responses that the vector applies to."""

    not_applicable: int = Field(default=0, exclude_if=lambda count: not count)
    """Scored responses that the vector does not apply to; left out if 0."""

    note: str | None = Field(default=None, exclude_if=lambda note: note is None)
    """What a mean of 0 or 1 leaves open, of a vector that says yes or no; left out otherwise."""


class DimensionFigures(BaseModel):
    """One dimension of one model. Each vector adds a key with its mean."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    runs: int
    overall: float | None
    coverage: float | None
    interval: Interval | None


class TurnFigures(BaseModel):
    """One turn of a model's runs: the first, second or later exchange of each."""

    model_config = ConfigDict(frozen=True)

    turn: int
    scored_responses: int
    overall: float | None
    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios that have this turn."""

    coverage: float | None
    vectors: dict[str, float | None]


class ModelFigures(BaseModel):
    """One model's row. Every score is 0.0 to 1.0, unrounded; null is unknown, never zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model", "baseline"]
    """`reference` is a built-in archetype, no real model; `baseline` is no tutor at all."""

    rank: int | None
    """The place among the real models with a score under the same conditions; null for a reference
    tutor. Without a scored real model reference tutors are ranked among themselves."""

    rank_interval: tuple[int, int] | None
    """The best and the worst rank that the model may have. Models whose difference may be chance
    share ranks: 5 % is the probability of one or more false differences under one set of
    conditions. Null without a rank, and among more than 100 ranked models."""

    other_weights: OtherWeights | None = Field(
        default=None, exclude_if=lambda weights: weights is None
    )
    """The place under other weights of the vectors; left out without a rank or another model, and
    where `overall` is no weighted mean of its vectors."""

    simulated_latency_ms: int
    total_runs: int
    """Runs that ended: scored, unscorable or failed."""

    planned_runs: int
    overall_score: float | None
    confidence_interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    interval_note: str | None
    """The reason why a model with a score has no interval; null otherwise."""

    coverage: float | None
    """The share of ended responses with a score; null before one ended."""

    scored_responses: int
    statuses: dict[str, int]
    vectors: dict[str, VectorFigure]
    dimensions: dict[str, DimensionFigures]
    turns: tuple[TurnFigures, ...] = Field(default=(), exclude_if=lambda turns: not turns)
    """The figures of each turn; left out where every run has one. A run counts once in the figures
    above, however many turns it has."""

    mean_visible_output_tokens: float | None
    mean_reasoning_tokens: float | None
    mean_input_tokens: float | None
    mean_latency_ms: float | None
    total_input_tokens: int | None
    """The total of the responses that the provider counted; null without such a response. The same
    holds for the totals below."""

    total_visible_output_tokens: int | None
    total_reasoning_tokens: int | None
    mean_cost_usd: float | None
    """Per response with a known cost; null where no price is known."""

    total_cost_usd: float | None
    """The total of the responses with a known cost; null without one, which is not zero. A
    reference tutor's cost is simulated."""

    cost_known: float | None
    """The share of ended responses with a known cost; null before one ended. Below 1 the total is a
    lower bound: a failed run has no known cost."""

    scenarios_alike: int = Field(default=0, exclude_if=lambda count: not count)
    """Scenarios with exactly the same figures, where they are more than half: the replies may
    repeat. Left out if 0."""

    notes: tuple[AnswerNote, ...] = Field(default=(), exclude_if=lambda notes: not notes)
    """What a reader has to know about the answers; left out without a note."""

    asked: tuple[date, date] | None = Field(default=None, exclude_if=lambda days: days is None)
    """The first and the last day of UTC on which the answers were asked for, reused ones included;
    left out where experiments of earlier versions do not tell."""

    experiment_ids: tuple[str, ...]
    """The experiments that the row is folded from, newest first."""

    conditions_id: str | None
    """The name of the row's conditions: figures of rows with the same one compare. Null for the
    baseline."""


def model_figures(row: ModelRow, place: Place | None, board: Leaderboard) -> ModelFigures:
    """Return the figures of a model's row."""
    model, standing = row.model, row.standing
    answers = yes_or_no_vectors(board.profile)
    return ModelFigures(
        model_id=model.id,
        model_name=model.display_name,
        kind="reference" if is_reference(model) else "model",
        rank=None if place is None else place.rank,
        rank_interval=None if place is None else place.interval,
        other_weights=None if place is None else place.other_weights,
        simulated_latency_ms=simulated_latency_ms(model),
        total_runs=standing.runs,
        planned_runs=row.planned_runs,
        overall_score=standing.overall.mean,
        confidence_interval=standing.overall.interval,
        interval_note=_interval_note(standing.overall),
        coverage=standing.coverage,
        scored_responses=standing.scored,
        statuses=dict(standing.statuses),
        vectors={name: _vector_figure(standing, name, answers.get(name)) for name in board.vectors},
        dimensions={
            dimension: _dimension_figures(of_dimension, board.vectors)
            for dimension, of_dimension in row.dimensions.items()
        },
        turns=tuple(
            _turn_figures(turn, of_turn, board.vectors) for turn, of_turn in row.turns.items()
        ),
        scenarios_alike=row.alike,
        notes=notes_of(row, board),
        asked=row.answers.days,
        experiment_ids=row.experiment_ids,
        conditions_id=row.conditions_id,
        **_consumption_figures(row.consumption, standing.responses),
    )


def baseline_figures(baseline: Baseline, board: Leaderboard) -> ModelFigures:
    """Return the figures of the constant reply, which has no runs."""
    return ModelFigures(
        model_id=BASELINE_ID,
        model_name=BASELINE_NAME,
        kind="baseline",
        rank=None,
        rank_interval=None,
        simulated_latency_ms=0,
        total_runs=0,
        planned_runs=0,
        overall_score=baseline.all[OVERALL],
        confidence_interval=None,
        interval_note=None,
        coverage=None,
        scored_responses=0,
        statuses={},
        vectors={
            name: VectorFigure(mean=baseline.all.get(name), interval=None, n=0)
            for name in board.vectors
        },
        dimensions={
            dimension: DimensionFigures.model_validate(
                {"runs": 0, "coverage": None, "interval": None, **means}
            )
            for dimension, means in baseline.dimensions.items()
        },
        experiment_ids=(),
        conditions_id=None,
        **_consumption_figures(Consumption(Tally(), Tally(), Tally(), Tally(), Tally()), 0),
    )


def _interval_note(estimate: MeanEstimate) -> str | None:
    if estimate.mean is None or estimate.interval is not None:
        return None
    return scenarios_missing(estimate.clusters)


def _vector_figure(standing: Standing, vector: str, yes: str | None = None) -> VectorFigure:
    estimate = standing.estimates.get(vector, MeanEstimate(0, None, None, 0))
    return VectorFigure(
        mean=estimate.mean,
        interval=estimate.interval,
        n=estimate.n,
        not_applicable=standing.not_applicable.get(vector, 0),
        note=None if yes is None else _unanimous(estimate, yes),
    )


def _unanimous(estimate: MeanEstimate, yes: str) -> str | None:
    """Return how many answers may yet differ where all are alike; None where they are not."""
    if estimate.interval is None:
        return None
    low, high = estimate.interval
    if estimate.mean == 1:
        return f"all {estimate.n} answers {yes}; up to {share(1 - low)} of such answers may not"
    if estimate.mean == 0:
        return f"none of {estimate.n} answers {yes}; up to {share(high)} of such answers may"
    return None


def _dimension_figures(standing: Standing, vectors: Iterable[str]) -> DimensionFigures:
    figures: dict[str, Any] = {vector: _vector_figure(standing, vector).mean for vector in vectors}
    figures |= {
        "runs": standing.runs,
        OVERALL: standing.overall.mean,
        "coverage": standing.coverage,
        "interval": standing.overall.interval,
    }
    return DimensionFigures.model_validate(figures)


def _turn_figures(turn: int, standing: Standing, vectors: Iterable[str]) -> TurnFigures:
    return TurnFigures(
        turn=turn,
        scored_responses=standing.scored,
        overall=standing.overall.mean,
        interval=standing.overall.interval,
        coverage=standing.coverage,
        vectors={vector: _vector_figure(standing, vector).mean for vector in vectors},
    )


def _consumption_figures(took: Consumption, responses: int) -> dict[str, Any]:
    cost = took.cost_nanodollars
    mean_cost = _mean(cost)
    return {
        "mean_visible_output_tokens": _mean(took.visible_output_tokens),
        "mean_reasoning_tokens": _mean(took.reasoning_tokens),
        "mean_input_tokens": _mean(took.input_tokens),
        "mean_latency_ms": _mean(took.latency_ms),
        "total_input_tokens": total(took.input_tokens),
        "total_visible_output_tokens": total(took.visible_output_tokens),
        "total_reasoning_tokens": total(took.reasoning_tokens),
        "mean_cost_usd": None if mean_cost is None else mean_cost / NANODOLLARS_PER_DOLLAR,
        "total_cost_usd": total_usd(cost),
        "cost_known": known_share(cost, responses),
    }


def _mean(tally: Tally) -> float | None:
    return tally.total / tally.n if tally.n else None
