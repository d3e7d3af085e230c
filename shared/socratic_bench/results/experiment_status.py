"""The status of an experiment: its progress, its cost, its state, and its failed runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.aggregates.stopping import reaches_in, stop_sentence
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.provider_batch import waiting_sentences
from socratic_bench.domain.run import Priority
from socratic_bench.domain.trouble import Trouble, one_line
from socratic_bench.ports.stores.aggregates import Aggregates, FailureCount
from socratic_bench.ports.stores.experiments import Experiments, Progress
from socratic_bench.ports.stores.leases import Leases, Spending
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.costs import (
    SpendingFigures,
    known_share,
    outline_simulated,
    total_usd,
)
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.leaderboard.leaderboard import ExperimentSummary, ModelComparison
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profiles import known_composition


@dataclass(slots=True)
class ModelFailures:
    """The failed runs of one model."""

    counts: Counter[str] = field(default_factory=Counter)
    """Failed runs by class."""

    examples: dict[str, str] = field(default_factory=dict)
    """The message of one failed run of each class."""

    def add(self, failed: FailureCount) -> None:
        """Add failed runs of one class."""
        self.counts[failed.kind] += failed.runs
        self.examples.setdefault(failed.kind, one_line(failed.message))


async def model_failures(store: Aggregates, experiment_id: str) -> Mapping[str, ModelFailures]:
    """Return the failures of the models with failed runs.

    A run does not count once it has ended with a response.
    """
    failures: dict[str, ModelFailures] = {}
    for each in await store.failure_kinds(experiment_id):
        failures.setdefault(each.model_id, ModelFailures()).add(each)
    return failures


async def why_unscored(store: Aggregates, comparison: ModelComparison) -> Mapping[str, str]:
    """Return the most frequent status or failure of each model with ended but no scored runs."""
    reasons: dict[str, str] = {}
    for model in comparison.models:
        if model.overall_score is not None or not model.statuses:
            continue
        reason = max(model.statuses, key=model.statuses.__getitem__)
        if reason == Status.ERROR:
            reason = await _most_frequent(store, model) or reason
        reasons[model.model_id] = reason
    return reasons


async def _most_frequent(store: Aggregates, model: ModelFigures) -> str | None:
    for experiment_id in model.experiment_ids:
        failures = await model_failures(store, experiment_id)
        if model.model_id in failures:
            [(kind, _)] = failures[model.model_id].counts.most_common(1)
            return kind
    return None


class StatusStore(Experiments, Leases, Protocol):
    """The roles of the store with the progress and the cost of experiments."""


class State(StrEnum):
    """The state of an experiment for people."""

    COMPLETE = "complete"
    """Every planned run is done, and every stored response has its score."""

    RUNNING = "running"
    OVERDUE = "overdue"
    """Its deadline has passed with pending runs."""

    PAUSED = "paused"
    """No call begins until it is resumed."""

    CANCELLED = "cancelled"
    """The services carry it out no further, unless it is resumed."""

    OUT_OF_BUDGET = "out_of_budget"
    """The runner gave up calls because the budget does not suffice, and runs are pending, before or
    after the deadline."""


class ExperimentStatus(ExperimentSummary):
    """The status of an experiment at one moment."""

    failed: int
    """Runs without a response after all tries; `done` includes them."""

    left: int
    """Pending runs."""

    deadline_at: datetime
    priority: Priority
    state: State
    spending: SpendingFigures

    @classmethod
    def at(
        cls, now: datetime, experiment: ExperimentOutline, progress: Progress, spending: Spending
    ) -> ExperimentStatus:
        """Return the status at `now` from progress and spending."""
        left = max(0, progress.planned - progress.done)
        return cls(
            **ExperimentSummary.of(experiment, done=progress.done).model_dump(),
            failed=progress.failed,
            left=left,
            deadline_at=experiment.deadline_at,
            priority=experiment.priority,
            state=_state(now, experiment, exhausted=spending.exhausted),
            spending=SpendingFigures.of(
                spending,
                has_prices=experiment.has_prices,
                is_simulated=outline_simulated(experiment),
            ),
        )


def _state(now: datetime, experiment: ExperimentOutline, *, exhausted: bool) -> State:
    if experiment.completed_at is not None:
        return State.COMPLETE
    if not experiment.state.calls_may_begin:
        return State(experiment.state)
    if exhausted:
        return State.OUT_OF_BUDGET
    return State.OVERDUE if now >= experiment.deadline_at else State.RUNNING


async def experiment_status(
    store: StatusStore, experiment: Experiment, now: datetime
) -> ExperimentStatus:
    """Return the status of a stored experiment at `now`."""
    progress = await store.progress(experiment.experiment_id)
    spending = await store.spending(experiment.experiment_id)
    return ExperimentStatus.at(now, ExperimentOutline.of(experiment), progress, spending)


async def experiment_statuses(
    store: StatusStore, experiments: Sequence[ExperimentOutline], now: datetime
) -> list[ExperimentStatus]:
    """Return the statuses of many experiments, with one query for each kind of figure."""
    ids = [each.experiment_id for each in experiments]
    progress, spending = await store.progress_of(ids), await store.spending_of(ids)
    return [
        ExperimentStatus.at(now, each, progress[each.experiment_id], spending[each.experiment_id])
        for each in experiments
        if each.experiment_id in progress and each.experiment_id in spending
    ]


class ModelProgress(BaseModel):
    """The progress of one model of an experiment, in runs, and its cost so far."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model; its cost is simulated."""

    planned: int
    done: int
    failed: int
    failures: dict[str, int]
    """Failed runs by class, the most frequent first."""

    failure_examples: dict[str, str]
    """The message of one failed run of each class."""

    total_cost_usd: float | None
    """The total of the responses with a known cost, reused ones included; null without one, which
    is not zero."""

    cost_known: float | None
    """The share of ended responses with a known cost; null before one ended."""


async def model_progress(store: Aggregates, experiment: Experiment) -> tuple[ModelProgress, ...]:
    """Return the progress of each model, in the order of the manifest: a fold of cells."""
    manifest = experiment.manifest
    cells: dict[str, list[Cell]] = {model.id: [] for model in manifest.models}
    for cell in await store.cells([experiment.experiment_id]):
        if cell.key.profile == manifest.profile:
            cells[cell.key.model_id].append(cell)
    failures: Mapping[str, ModelFailures] = {}
    if any(Status.ERROR in cell.statuses for each in cells.values() for cell in each):
        failures = await model_failures(store, experiment.experiment_id)
    planned = len(manifest.scenarios) * manifest.due_repeats
    return tuple(
        _model_progress(model, planned, cells[model.id], failures.get(model.id, ModelFailures()))
        for model in manifest.models
    )


def _model_progress(
    model: TutorModel, planned: int, cells: Sequence[Cell], failures: ModelFailures
) -> ModelProgress:
    cost = Tally()
    for cell in cells:
        cost.merge(cell.cost_nanodollars)
    return ModelProgress(
        model_id=model.id,
        model_name=model.display_name,
        kind="reference" if is_reference(model) else "model",
        planned=planned,
        done=sum(cell.runs_ended for cell in cells),
        failed=sum(cell.statuses.get(Status.ERROR, 0) for cell in cells),
        failures=dict(failures.counts.most_common()),
        failure_examples=failures.examples,
        total_cost_usd=total_usd(cost),
        cost_known=known_share(cost, sum(cell.responses for cell in cells)),
    )


async def waiting_in_batches(store: Leases, experiment: Experiment) -> list[str]:
    """Return a sentence for each provider's batch that turns wait in, oldest first."""
    if not experiment.manifest.has_batches:
        return []
    turns = await store.waiting_turns(experiment.experiment_id)
    return waiting_sentences(each.batch for each in turns)


async def stop_told(store: Aggregates, experiment: Experiment, done: int) -> str | None:
    """Return how far the intervals of an experiment with `stop_when` reach, and what repeats can do
    for them, given its ended runs; None for other experiments.
    """
    manifest = experiment.manifest
    if manifest.stop_when is None:
        return None
    cells = await store.cells([experiment.experiment_id])
    reaches = reaches_in(manifest, cells, known_composition(manifest.profile))
    repeats = done // manifest.runs_of_a_round
    return stop_sentence(reaches, manifest.stop_when.interval, repeats, manifest.repeats)


async def model_troubles(store: Leases, experiment: Experiment) -> tuple[Trouble, ...]:
    """Return the troubles that live runners report, in the order of the manifest, the grader last.

    Of several troubles of one model, the one with the most attempts counts.
    """
    if experiment.completed_at is not None:
        return ()
    troubles: dict[str, Trouble] = {}
    for trouble in await store.troubles(experiment.experiment_id):
        told = troubles.get(trouble.model_id)
        if told is None or told.attempt < trouble.attempt:
            troubles[trouble.model_id] = trouble
    ids = dict.fromkeys(model.id for model in experiment.manifest.called_models)
    return tuple(troubles[id_] for id_ in ids if id_ in troubles)
