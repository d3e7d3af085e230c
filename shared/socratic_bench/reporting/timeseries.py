"""Each model's score over time, in the shape of `/api/timeseries`: one point per experiment."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.leaderboard import ModelRow, RowKey, build_leaderboard
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import UnknownModel
from socratic_bench.reporting.leaderboard.selection import MOST_CELLS
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profiles import known_vectors

MOST_POINTS: Final = 104
"""The most experiments, newest first: two years of one a week."""

_EXPERIMENTS_PER_QUERY: Final = 10


class Point(BaseModel):
    """One model in one experiment."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    title: str | None
    """The experiment's name, or else its occasion; null without both."""

    created_at: datetime
    profile: str
    conditions_id: str
    joins: bool
    """Whether profile and conditions are those of the point before. A line between two points that
    do not join would show a change of the benchmark as one of the model."""

    overall_score: float | None
    confidence_interval: tuple[float, float] | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    coverage: float | None
    total_runs: int


class ModelSeries(BaseModel):
    """The points of one model, oldest first."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    points: tuple[Point, ...]


class Timeseries(BaseModel):
    """The points of all models, by model id."""

    model_config = ConfigDict(frozen=True)

    models: tuple[ModelSeries, ...]
    experiments: int
    """Experiments with a point."""

    left_out: int
    """Older experiments, beyond what one answer holds."""


async def timeseries(
    store: ResultStore, model: str | None = None, profile: str | None = None
) -> Timeseries:
    """Return the points of all models, or of one. Raises UnknownModel, NoScores.

    A point is by its experiment's own profile, or by `profile`: then experiments without scores by
    it have none. The newest MOST_POINTS experiments have points, and fewer where their cells are
    many.
    """
    every = await store.outlines()
    asking = [each for each in every if model is None or model in each.model_ids]
    if model is not None and not asking:
        raise UnknownModel(f"no experiment of this store has a model {model!r}")
    if profile is not None:
        ids = [each.experiment_id for each in asking[:MOST_POINTS]]
        scored = set(await scored_by(store, ids, profile))
        asking = [each for each in asking if each.experiment_id in scored]
    cells: dict[str, list[Cell]] = {}
    count = 0
    for start in range(0, min(len(asking), MOST_POINTS), _EXPERIMENTS_PER_QUERY):
        if count >= MOST_CELLS:
            break
        ids = [
            each.experiment_id
            for each in asking[:MOST_POINTS][start : start + _EXPERIMENTS_PER_QUERY]
        ]
        cells |= {experiment_id: [] for experiment_id in ids}
        for cell in await store.cells(ids):
            if model in {None, cell.key.model_id}:
                cells[cell.key.experiment_id].append(cell)
                count += 1
    shown = [each for each in reversed(asking) if each.experiment_id in cells]
    series = await asyncio.to_thread(_series, shown, cells, model, profile)
    return Timeseries(models=series, experiments=len(shown), left_out=len(asking) - len(shown))


def _series(
    experiments: Iterable[ExperimentOutline],
    cells: Mapping[str, Sequence[Cell]],
    model: str | None,
    profile: str | None,
) -> tuple[ModelSeries, ...]:
    """Return the series of each model; `experiments` come oldest first."""
    points: defaultdict[str, list[Point]] = defaultdict(list)
    names: dict[str, str] = {}
    for experiment in experiments:
        ids = [each for each in experiment.model_ids if model in {None, each}]
        shown = profile or experiment.profile
        board = build_leaderboard(
            {RowKey(each, experiment.conditions_id): (experiment,) for each in ids},
            cells[experiment.experiment_id],
            shown,
            known_vectors(shown),
        )
        for row in board.rows:
            before = points[row.model.id]
            names[row.model.id] = row.model.display_name
            before.append(_point(row, experiment, shown, before[-1] if before else None))
    return tuple(
        ModelSeries(model_id=each, model_name=names[each], points=tuple(points[each]))
        for each in sorted(points)
    )


def _point(
    row: ModelRow, experiment: ExperimentOutline, profile: str, before: Point | None
) -> Point:
    own = (profile, experiment.conditions_id)
    overall = row.standing.overall
    return Point(
        experiment_id=experiment.experiment_id,
        title=experiment.name or experiment.occasion,
        created_at=experiment.created_at,
        profile=profile,
        conditions_id=experiment.conditions_id,
        joins=before is not None and own == (before.profile, before.conditions_id),
        overall_score=overall.mean,
        confidence_interval=overall.interval,
        coverage=row.standing.coverage,
        total_runs=row.standing.runs,
    )
