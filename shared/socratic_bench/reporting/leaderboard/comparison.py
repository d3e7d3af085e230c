"""The leaderboard in the shape of `/api/model-comparison`, for the API and the command."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.aggregates.leaderboard import (
    Consumption,
    Leaderboard,
    ModelRow,
    Standing,
)
from socratic_bench.domain.aggregates.ranking import rank_intervals
from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS, Estimate
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.providers.registry import is_reference, simulated_latency_ms
from socratic_bench.reporting.costs import known_share, total, total_usd
from socratic_bench.reporting.leaderboard.baseline import (
    BASELINE_ID,
    BASELINE_NAME,
    Baseline,
    table_baseline,
)
from socratic_bench.reporting.leaderboard.selection import Selection, select
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

Interval = tuple[float, float]

MOST_COMPARED: Final = 100
"""The most models that are compared in pairs: the pairs of more take too long for an answer."""

MOST_NAMED: Final = 4
"""The most conditions that a note names, and the most experiments under each."""


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


class DimensionFigures(BaseModel):
    """One dimension of one model. Each vector adds a key with its mean."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    runs: int
    overall: float | None
    coverage: float | None
    interval: Interval | None


class ModelFigures(BaseModel):
    """One model's row. Every score is 0.0 to 1.0, unrounded; null is unknown, never zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model", "baseline"]
    """`reference` is a built-in archetype, no real model; `baseline` is no tutor at all."""

    rank: int | None
    """The place among the real models with a score; null for a reference tutor. A table without a
    scored real model ranks reference tutors among themselves."""

    rank_interval: tuple[int, int] | None
    """The best and the worst rank that the model may have. Models whose difference may be chance
    share ranks: 5 % is the probability of one or more false differences in the table. Null without
    a rank, in a table of different conditions, and in one of more than 100 ranked models."""

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

    experiment_ids: tuple[str, ...]
    """The experiments that the row is folded from, newest first."""


class ExperimentSummary(BaseModel):
    """An experiment and its progress, in runs."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    manifest_id: str
    conditions_id: str
    """The name of the conditions: figures of experiments with the same one compare."""

    profile: str
    occasion: str | None
    name: str | None
    """The experiment's name for people; null without one."""

    notes: str | None
    models: int
    created_at: datetime
    completed_at: datetime | None
    planned: int
    done: int

    @classmethod
    def of(cls, experiment: ExperimentOutline, *, done: int) -> ExperimentSummary:
        return cls(
            experiment_id=experiment.experiment_id,
            manifest_id=experiment.manifest_id,
            conditions_id=experiment.conditions_id,
            profile=experiment.profile,
            occasion=experiment.occasion,
            name=experiment.name,
            notes=experiment.notes,
            models=len(experiment.model_ids),
            created_at=experiment.created_at,
            completed_at=experiment.completed_at,
            planned=experiment.planned_runs,
            done=done,
        )


class ModelComparison(BaseModel):
    """All models under one profile, best first; those without a score last, by id."""

    model_config = ConfigDict(frozen=True)

    models: tuple[ModelFigures, ...]
    winner: str | None
    """The first model's id, if it has a score."""

    profile: str
    vectors: tuple[str, ...]
    """The names of the profile's vectors, in its order."""

    dimensions: tuple[str, ...]
    experiments: tuple[ExperimentSummary, ...]
    """The experiments in this table, newest first."""

    baseline: ModelFigures | None
    """A tutor that says the same to everybody, scored on the table's scenarios: a mean below it
    tells of no reading. Null for a table of different conditions, without an experiment, and under
    a profile that this installation does not have."""

    mixed_conditions: bool
    """Whether the table mixes different conditions, whose figures do not compare."""

    note: str | None
    """A caution for comparisons; null without one."""

    version: str = __version__
    """The version of Socratic Bench that made the table."""

    @property
    def rows(self) -> tuple[ModelFigures, ...]:
        """The rows of a table for people: the models, and then the baseline."""
        return self.models if self.baseline is None else (*self.models, self.baseline)


async def model_comparison(store: ResultStore, experiment: str | None = None) -> ModelComparison:
    """Return the leaderboard of each model's newest experiment, of one experiment, or of `all`.

    A table has one profile, its newest experiment's; it leaves out experiments under others, and
    `note` says so. Raises UnknownExperiment, AmbiguousExperiment.
    """
    selected = await select(store, experiment)
    baseline = await table_baseline(store, selected)
    return await asyncio.to_thread(_compare, selected, baseline)


def _compare(selected: Selection, baseline: Baseline | None) -> ModelComparison:
    board = selected.leaderboard()
    winner = board.winner
    mixed = len(board.conditions) > 1
    return ModelComparison(
        models=tuple(
            _model_figures(row, place, board)
            for row, place in zip(board.rows, _places(board), strict=True)
        ),
        winner=None if winner is None else winner.model.id,
        profile=board.profile,
        vectors=board.vectors,
        dimensions=board.dimensions,
        experiments=tuple(
            ExperimentSummary.of(each, done=selected.done[each.experiment_id])
            for each in board.experiments
        ),
        baseline=None if baseline is None else _baseline_figures(baseline, board),
        mixed_conditions=mixed,
        note=_note(board, selected),
    )


def _note(board: Leaderboard, selected: Selection) -> str | None:
    sentences = []
    profile, left_out = board.profile, selected.left_out
    if len(board.conditions) > 1:
        sentences.append(
            f"This table mixes {len(board.conditions)} different test conditions (scenarios, "
            f"prompts or parameters): {_by_conditions(board)}. Figures compare only within one of "
            "them."
        )
    if left_out:
        experiments = "1 experiment" if left_out == 1 else f"{left_out} experiments"
        verb = "is" if left_out == 1 else "are"
        sentences.append(f"{experiments} scored by another profile than {profile} {verb} left out.")
    if selected.too_old:
        sentences.append(
            f"One table cannot hold all experiments: the {selected.too_old} oldest are left out."
        )
    return " ".join(sentences) or None


def _by_conditions(board: Leaderboard) -> str:
    """Return the experiments under each of the conditions: "Prompt B (exp-1), exp-2; exp-3"."""
    groups = [
        [_title(each) for each in board.experiments if each.conditions_id == conditions]
        for conditions in board.conditions
    ]
    return _first("; ", [_first(", ", group) for group in groups])


def _title(experiment: ExperimentOutline) -> str:
    title = experiment.name or experiment.occasion
    return f"{title} ({experiment.experiment_id})" if title else experiment.experiment_id


def _first(between: str, words: Sequence[str]) -> str:
    more = len(words) - MOST_NAMED
    return between.join(words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class _Place:
    rank: int
    interval: tuple[int, int] | None


def _places(board: Leaderboard) -> list[_Place | None]:
    """Return the place of each row; rows come best first."""
    scored = [row for row in board.rows if row.standing.overall.mean is not None]
    ranked = [row for row in scored if not is_reference(row.model)] or scored
    intervals: Sequence[tuple[int, int] | None] = [None] * len(ranked)
    if len(board.conditions) == 1 and len(ranked) <= MOST_COMPARED:
        intervals = rank_intervals([row.scenarios for row in ranked])
    places = {
        row.model.id: _Place(rank, interval)
        for rank, (row, interval) in enumerate(zip(ranked, intervals, strict=True), 1)
    }
    return [places.get(row.model.id) for row in board.rows]


def _model_figures(row: ModelRow, place: _Place | None, board: Leaderboard) -> ModelFigures:
    model, standing = row.model, row.standing
    return ModelFigures(
        model_id=model.id,
        model_name=model.display_name,
        kind="reference" if is_reference(model) else "model",
        rank=None if place is None else place.rank,
        rank_interval=None if place is None else place.interval,
        simulated_latency_ms=simulated_latency_ms(model),
        total_runs=standing.runs,
        planned_runs=row.planned_runs,
        overall_score=standing.overall.mean,
        confidence_interval=standing.overall.interval,
        interval_note=_interval_note(standing.overall),
        coverage=standing.coverage,
        scored_responses=standing.scored,
        statuses=dict(standing.statuses),
        vectors={name: _vector_figure(standing, name) for name in board.vectors},
        dimensions={
            dimension: _dimension_figures(of_dimension, board.vectors)
            for dimension, of_dimension in row.dimensions.items()
        },
        experiment_ids=row.experiment_ids,
        **_consumption_figures(row.consumption, standing.responses),
    )


def _baseline_figures(baseline: Baseline, board: Leaderboard) -> ModelFigures:
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
        **_consumption_figures(Consumption(Tally(), Tally(), Tally(), Tally(), Tally()), 0),
    )


def _interval_note(estimate: Estimate) -> str | None:
    if estimate.mean is None or estimate.interval is not None:
        return None
    counted = "1 scenario has" if estimate.clusters == 1 else f"{estimate.clusters} scenarios have"
    return f"An interval needs {FEWEST_CLUSTERS} scenarios; {counted} a score."


def _vector_figure(standing: Standing, vector: str) -> VectorFigure:
    estimate = standing.estimates.get(vector, Estimate(0, None, None, 0))
    return VectorFigure(
        mean=estimate.mean,
        interval=estimate.interval,
        n=estimate.n,
        not_applicable=standing.not_applicable.get(vector, 0),
    )


def _dimension_figures(standing: Standing, vectors: Iterable[str]) -> DimensionFigures:
    figures: dict[str, Any] = {vector: _vector_figure(standing, vector).mean for vector in vectors}
    figures |= {
        "runs": standing.runs,
        OVERALL: standing.overall.mean,
        "coverage": standing.coverage,
        "interval": standing.overall.interval,
    }
    return DimensionFigures.model_validate(figures)


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
