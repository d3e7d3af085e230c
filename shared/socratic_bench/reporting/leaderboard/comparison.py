"""The leaderboard in the shape of `/api/model-comparison`, for the API and the command."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.leaderboard import Leaderboard
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.reporting.filters import EVERYTHING, Filters
from socratic_bench.reporting.known.pools import KnownPools
from socratic_bench.reporting.leaderboard.baseline import Baseline, table_baseline
from socratic_bench.reporting.leaderboard.choice import LeftOutReason
from socratic_bench.reporting.leaderboard.figures import (
    ModelFigures,
    baseline_figures,
    model_figures,
)
from socratic_bench.reporting.leaderboard.notes import cautions_of
from socratic_bench.reporting.leaderboard.places import places
from socratic_bench.reporting.leaderboard.selection import Selection, select
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.version import __version__

MOST_LISTED: Final = 20
"""The most experiments that a table lists as left out for one reason."""


class ExperimentSummary(BaseModel):
    """An experiment and its progress, in runs."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    manifest_id: str
    conditions_id: str
    """The name of the conditions: figures of experiments with the same one compare."""

    profile: str
    """The experiment's own profile; the table may have another one."""

    occasion: str | None
    name: str | None
    """The experiment's name for people; null without one."""

    notes: str | None
    pinned_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    """The time at which a person pinned it for the default table; left out if nobody did."""

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
            pinned_at=experiment.pinned_at,
            models=len(experiment.model_ids),
            created_at=experiment.created_at,
            completed_at=experiment.completed_at,
            planned=experiment.planned_runs,
            done=done,
        )


class LeftOut(BaseModel):
    """The experiments that a table leaves out for one reason."""

    model_config = ConfigDict(frozen=True)

    reason: LeftOutReason
    count: int
    experiment_ids: tuple[str, ...]
    """The newest 20, newest first."""


class Filtered(BaseModel):
    """What a table is filtered by, and the choice there is."""

    model_config = ConfigDict(frozen=True)

    models: tuple[str, ...]
    """The ids of the models that are shown; empty: all."""

    dimension: str | None
    since: datetime | None
    """Experiments created at this time or later."""

    until: datetime | None
    """Experiments created before this time."""

    told: str
    """The filters and their meaning in sentences."""

    known_models: tuple[str, ...]
    """The ids of all models of the table, hidden ones included."""

    known_dimensions: tuple[str, ...]
    """All dimensions of the table's experiments."""

    @classmethod
    def of(cls, filters: Filters, board: Leaderboard) -> Filtered:
        models = tuple(dict.fromkeys(row.model.id for row in board.rows))
        return cls(
            models=filters.models,
            dimension=filters.dimension,
            since=filters.since,
            until=filters.until,
            told=filters.sentences(models, len(board.experiments)),
            known_models=models,
            known_dimensions=tuple(
                dict.fromkeys(each.dimension for e in board.experiments for each in e.scenarios)
            ),
        )


class ModelComparison(BaseModel):
    """All models under one profile, best first; those without a score last, by id.

    A table of different conditions has a row for each model and conditions, the newest first.
    """

    model_config = ConfigDict(frozen=True)

    models: tuple[ModelFigures, ...]
    winner: str | None
    """The first model's id, if it has a score and the table has one set of conditions; null where
    models are filtered. Of one dimension, it is the first on that dimension."""

    profile: str
    profiles: tuple[str, ...]
    """The profiles that the experiments have scores by, their own one first; of at most 20
    experiments."""

    vectors: tuple[str, ...]
    """The names of the profile's vectors, in its order."""

    dimensions: tuple[str, ...]
    experiments: tuple[ExperimentSummary, ...]
    """The experiments in this table, newest first."""

    left_out: tuple[LeftOut, ...]
    """The experiments that are not in this table, by reason; empty where one was named."""

    baseline: ModelFigures | None
    """A tutor that says the same to everybody, scored on the table's scenarios: a mean below it
    tells of no reading. Null for a table of different conditions, without an experiment, and under
    a profile that this installation does not have."""

    mixed_conditions: bool
    """Whether the table has different conditions; figures compare only within one."""

    filtered: Filtered | None = Field(default=None, exclude_if=lambda each: each is None)
    """The filters; left out without one."""

    note: str | None
    """All cautions for comparisons in one text; null without one."""

    notes: tuple[str, ...]
    """The cautions, one by one."""

    version: str = __version__
    """The version of Socratic Bench that made the table."""

    @property
    def rows(self) -> tuple[ModelFigures, ...]:
        """The rows of a table for people: the models, and then the baseline."""
        return self.models if self.baseline is None else (*self.models, self.baseline)

    @property
    def cautions(self) -> tuple[str, ...]:
        """The filters and the notes, for a table that stands alone."""
        return self.notes if self.filtered is None else (self.filtered.told, *self.notes)


async def model_comparison(
    store: ResultStore,
    experiment: str | None = None,
    profile: str | None = None,
    filters: Filters = EVERYTHING,
    known: KnownPools | None = None,
) -> ModelComparison:
    """Return the leaderboard of what belongs together, of one experiment, or of `all`.

    A table has one profile: the experiments' own one, or `profile`. `left_out` and `note` name the
    experiments that it leaves out, `filtered` what the filters hide. Raises UnknownExperiment,
    AmbiguousExperiment, NoScores where no experiment has a score by `profile`, and InvalidInput
    for a model or a dimension that no experiment has.
    """
    selected = await select(store, experiment, profile, filters, known)
    baseline = await table_baseline(store, selected)
    profiles = await _profiles(store, selected)
    return await asyncio.to_thread(_compare, selected, baseline, profiles)


async def _profiles(store: Aggregates, selected: Selection) -> tuple[str, ...]:
    newest = dict.fromkeys(
        each.experiment_id for row in selected.choice.rows.values() for each in row
    )
    found = await store.scored_profiles(list(newest)[:MOST_LISTED])
    names = dict.fromkeys(name for id_ in newest for name in found.get(id_, ()))
    return tuple(names) or (selected.profile,)


def _compare(
    selected: Selection, baseline: Baseline | None, profiles: tuple[str, ...]
) -> ModelComparison:
    board = selected.leaderboard()
    # D-417: the first of some hidden models wins nothing.
    winner = None if selected.filters.models else board.winner
    mixed = len(board.conditions) > 1
    models = tuple(
        model_figures(row, place, board)
        for row, place in zip(board.rows, places(board), strict=True)
        if selected.shows(row.model.id)
    )
    notes = cautions_of(board, selected, models)
    return ModelComparison(
        models=models,
        winner=None if winner is None else winner.model.id,
        profile=board.profile,
        profiles=profiles,
        vectors=board.vectors,
        dimensions=board.dimensions,
        experiments=tuple(
            ExperimentSummary.of(each, done=selected.done[each.experiment_id])
            for each in board.experiments
        ),
        left_out=_left_out(selected),
        baseline=None if baseline is None else baseline_figures(baseline, board),
        mixed_conditions=mixed,
        filtered=Filtered.of(selected.filters, board) if selected.filters else None,
        note=" ".join(notes) or None,
        notes=notes,
    )


def _left_out(selected: Selection) -> tuple[LeftOut, ...]:
    by_reason: dict[LeftOutReason, list[str]] = {}
    for experiment_id, reason in selected.choice.left_out.items():
        by_reason.setdefault(reason, []).append(experiment_id)
    return tuple(
        LeftOut(reason=reason, count=len(ids), experiment_ids=tuple(ids[:MOST_LISTED]))
        for reason, ids in by_reason.items()
    )
