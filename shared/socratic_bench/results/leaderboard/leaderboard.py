"""The leaderboard in the shape of `/api/model-comparison`, with its cautions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.leaderboard import Leaderboard
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.providers.registry import is_imported
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.costs import SpendingFigures, spending_figures
from socratic_bench.results.experiment_choice import CostedStore, with_weighted
from socratic_bench.results.filters import EVERYTHING, Filters
from socratic_bench.results.formats import printable
from socratic_bench.results.leaderboard import answer_sentences
from socratic_bench.results.leaderboard.baseline import Baseline, table_baseline
from socratic_bench.results.leaderboard.figures import (
    ModelFigures,
    baseline_figures,
    model_figures,
)
from socratic_bench.results.leaderboard.places import places, unsteady_pairs
from socratic_bench.results.leaderboard.prompt_effects import PromptEffect, prompt_effects
from socratic_bench.results.leaderboard.selection import LeftOutReason, Selection, select
from socratic_bench.scoring.profiles import weights_sentence
from socratic_bench.scoring.weighted_profile import stored_profile
from socratic_bench.version import __version__

MOST_NAMED: Final = 4
"""The most conditions that a note names, and the most experiments of each group."""

_REASONS: Final[Mapping[LeftOutReason, str]] = {
    LeftOutReason.NOT_PINNED: "not pinned",
    LeftOutReason.OTHER_PROFILE: "another profile",
    LeftOutReason.OTHER_CONDITIONS: "other test conditions",
    LeftOutReason.NO_SCORE: "no run has a score",
    LeftOutReason.PILOT: "half as many runs or fewer",
    LeftOutReason.INCOMPLETE: "incomplete",
    LeftOutReason.OLDER: "older",
    LeftOutReason.TOO_MANY: "no room in one table",
}


def cautions_of(
    board: Leaderboard, selected: Selection, models: Sequence[ModelFigures]
) -> tuple[str, ...]:
    """Return the cautions, a note each. `models` are the shown rows."""
    sentences = []
    pinned = [each for each in board.experiments if each.pinned_at is not None]
    if selected.is_default and pinned:
        verb = "is" if len(pinned) == 1 else "are"
        sentences.append(f"{_first(', ', map(title, pinned))} {verb} pinned.")
    if (weights := weights_sentence(board.profile)) is not None:
        sentences.append(weights)
    own = stored_profile(board.profile)
    if others := sorted({each.profile for each in board.experiments} - {own}):
        sentences.append(
            f"The scores are by {own}, not by the profile of the plan, {', '.join(others)}."
        )
    if len(board.conditions) > 1:
        sentences.append(
            f"This table has {len(board.conditions)} sets of test conditions (scenarios, prompts, "
            f"parameters or student): {_by_conditions(board)}. A model has a row under each; "
            "figures and ranks compare only within one."
        )
    sentences += imported_sentences(board.experiments)
    sentences += student_sentences(board.experiments)
    if pooled := sum(len(row.experiment_ids) > 1 for row in board.rows):
        rows = "1 row pools" if pooled == 1 else f"{pooled} rows pool"
        sentences.append(f"{rows} the runs of several experiments under the same conditions.")
    if alike := [row for row in board.rows if row.alike]:
        named = _first(", ", (f"{printable(row.model.id)} ({row.alike})" for row in alike))
        sentences.append(
            f"More than half of the scenarios have exactly the same figures for {named}: the "
            "replies may repeat. Read them with `socratic-bench transcripts`."
        )
    if pairs := unsteady_pairs((model.model_id, model.other_weights) for model in models):
        sentences.append(
            "The order depends on the weights of the vectors. The first of these neighbours is "
            f"ahead under less than 95 % of all weightings: {_first(', ', pairs)}."
        )
    on_answers = {printable(model.model_id): model.notes for model in models}
    sentences += answer_sentences.sentences(on_answers, MOST_NAMED)
    return (*sentences, *left_out_sentences(selected))


def imported_sentences(experiments: Sequence[ExperimentOutline]) -> list[str]:
    """Return which experiments have answers that no call asked for; empty without one."""
    imported = [each for each in experiments if any(map(is_imported, each.model_ids))]
    if not imported:
        return []
    files = _first(", ", [(each.notes or title(each)) for each in imported])
    return [f"No call asked the imported tutors. {printable(files).rstrip('.')}."]


def student_sentences(experiments: Sequence[ExperimentOutline]) -> list[str]:
    """Return which models play the student in experiments; empty where none does."""
    sentences = []
    for told in dict.fromkeys(each.student for each in experiments if each.student is not None):
        played = [each for each in experiments if each.student == told]
        where = "" if len(played) == len(experiments) else f" in {_first(', ', map(title, played))}"
        sentences.append(
            f"{printable(told)} plays the student{where}: the figures do not compare with those of "
            "fixed scripts."
        )
    return sentences


def title(experiment: ExperimentOutline) -> str:
    """Return an experiment's name and occasion with its id, or the id alone."""
    named = experiment.title
    return f"{named} ({experiment.experiment_id})" if named else experiment.experiment_id


def left_out_sentences(selected: Selection) -> list[str]:
    """Return what a table leaves out and what to do to see it; empty where it has everything."""
    left_out = selected.choice.left_out
    if not left_out:
        return []
    titles = {each.experiment_id: title(each) for each in selected.experiments}
    groups = []
    for reason in dict.fromkeys(left_out.values()):
        named = [titles[id_] for id_, its_reason in left_out.items() if its_reason is reason]
        groups.append(f"{_first(', ', named)} [{_REASONS[reason]}]")
    return [f"Left out: {'; '.join(groups)}.", _remedy(selected)]


def _remedy(selected: Selection) -> str:
    if selected.is_default:
        return (
            "Name an experiment to see it alone, or `all` to see every set of conditions; "
            "`socratic-bench pin` decides which one is shown by default."
        )
    return "Name an experiment to see it alone."


def _by_conditions(board: Leaderboard) -> str:
    """Return the experiments under each of the conditions: "Prompt B (exp-1), exp-2; exp-3"."""
    groups = [
        _first(
            ", ", [title(each) for each in board.experiments if each.conditions_id == conditions]
        )
        for conditions in board.conditions
    ]
    return _first("; ", groups)


def _first(between: str, words: Iterable[str]) -> str:
    every: Sequence[str] = list(words)
    more = len(every) - MOST_NAMED
    return between.join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


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
    does not show that a model read a message. Null for a table of different conditions, without an
    experiment, and under a profile that this installation does not have."""

    prompts: tuple[PromptEffect, ...] = Field(default=(), exclude_if=lambda each: not each)
    """The effect of each prompt over the shown models; left out unless each model was asked under
    several, and for a table of different conditions."""

    mixed_conditions: bool
    """Whether the table has different conditions; figures compare only within one."""

    filtered: Filtered | None = Field(default=None, exclude_if=lambda each: each is None)
    """The filters; left out without one."""

    spending: SpendingFigures
    """What the experiments of the table cost as a whole, whatever the filters hide."""

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
        """The cost, the filters and the notes, for a table that stands alone."""
        of = f" of {many} experiments" if (many := len(self.experiments)) > 1 else ""
        told = (f"Cost{of}: {self.spending.told}.",) if self.spending.is_known else ()
        return (*told, *((self.filtered.told,) if self.filtered else ()), *self.notes)


async def model_comparison(
    store: CostedStore,
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
    board = await asyncio.to_thread(selected.leaderboard)
    spending = await spending_figures(store, board.experiments)
    return await asyncio.to_thread(_compare, selected, board, baseline, profiles, spending)


async def _profiles(store: Aggregates, selected: Selection) -> tuple[str, ...]:
    newest = dict.fromkeys(
        each.experiment_id for row in selected.choice.rows.values() for each in row
    )
    found = await store.scored_profiles(list(newest)[:MOST_LISTED])
    names = dict.fromkeys(name for id_ in newest for name in found.get(id_, ()))
    rows = selected.choice.rows.values()
    weightings = (name for row in rows for each in row for name in each.weightings)
    return with_weighted(tuple(names), weightings) or (selected.profile,)


def _compare(
    selected: Selection,
    board: Leaderboard,
    baseline: Baseline | None,
    profiles: tuple[str, ...],
    spending: SpendingFigures,
) -> ModelComparison:
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
        prompts=()
        if mixed
        else prompt_effects(
            (row for row in board.rows if selected.shows(row.model.id)), board.experiments
        ),
        mixed_conditions=mixed,
        filtered=Filtered.of(selected.filters, board) if selected.filters else None,
        spending=spending,
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
