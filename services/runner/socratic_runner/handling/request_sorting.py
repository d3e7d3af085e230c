"""Sorting requests of runs: those to carry out, and those that are settled without a call."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from socratic_bench.consuming.outcomes import Handled, Outcome, Postponed, Rejected, Work
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.errors import InvalidInput
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.ports.stores.responses import RecordedFailure, Responses
from socratic_runner.conversations.call_outcomes import not_callable
from socratic_runner.conversations.conversation import Conversation, TurnFailed
from socratic_runner.experiment_cache import ExperimentCache, NotUnderstood
from socratic_runner.handling.run_outcomes import RunOutcomes, retry_of
from socratic_runner.model_pool import CalledModel, ModelPool, grader_in_hand, student_in_hand
from socratic_runner.troubles import Troubles, model_of


@dataclass(slots=True, eq=False)
class RunInHand:
    """A run that is being carried out."""

    work: Work[RunRequested]
    model: CalledModel
    conversation: Conversation
    student: CalledModel | None = None
    """The model that plays the student, if one does."""

    published: int = 0
    """How many of its responses this runner has published."""

    on_end: asyncio.Event | None = None
    """Set at its end if another request of the run waits for it."""

    @property
    def run_id(self) -> str:
        return self.conversation.run.run_id

    @property
    def model_in_hand(self) -> ModelInHand:
        return model_of(self.conversation.run)

    @property
    def deadline(self) -> float:
        """Seconds that one call of the run may take."""
        return max(each.deadline for each in (self.model, self.student) if each is not None)

    @property
    def unpublished(self) -> list[Response]:
        """Its responses that this runner has not published yet."""
        return self.conversation.responses[self.published :]


@dataclass(slots=True)
class RunsInHand:
    """Each run in hand, by its id."""

    _runs: dict[str, RunInHand] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RunInHand]:
        return iter(self._runs.values())

    def models(self) -> set[ModelInHand]:
        """The models whose clients these runs use, graders and students included."""
        graded = (run.conversation for run in self if run.conversation.is_graded)
        graders = {grader_in_hand(each.experiment) for each in graded}
        played = (run.conversation for run in self if run.student is not None)
        students = {student_in_hand(each.experiment) for each in played}
        return {run.model_in_hand for run in self} | graders | students

    def get(self, run_id: str) -> RunInHand | None:
        """Return the run if it is in hand."""
        return self._runs.get(run_id)

    def take(self, run: RunInHand) -> None:
        """Note that a run is carried out from now on."""
        self._runs[run.run_id] = run

    def forget(self, run: RunInHand) -> None:
        """Note that a run is not carried out any more, and tell the requests that wait for it."""
        if self._runs.get(run.run_id) is run:
            del self._runs[run.run_id]
            if run.on_end is not None:
                run.on_end.set()

    async def end_of(self, run: RunInHand) -> None:
        """Wait until a run is not in hand any more."""
        if self._runs.get(run.run_id) is run:
            run.on_end = run.on_end or asyncio.Event()
            await run.on_end.wait()


NEWER_SECONDS: Final = 60.0
"""Seconds before the broker redelivers a run that only a newer version can carry out."""


@dataclass(slots=True)
class SortedRequests:
    """A batch of requests, sorted by their treatment."""

    settled: list[Outcome] = field(default_factory=list)
    due: list[RunInHand] = field(default_factory=list)
    joins: list[tuple[Work[RunRequested], RunInHand]] = field(default_factory=list)
    """Requests of runs that this runner carries out already."""

    ended: list[tuple[Work[RunRequested], Conversation, RecordedFailure | None]] = field(
        default_factory=list
    )
    """Runs whose model cannot be called, and answered and failed runs whose responses may need
    gradings, with the stored failures."""

    @property
    def models(self) -> set[ModelInHand]:
        """The models of the runs in hand."""
        return {
            *(each.model_in_hand for each in self.due),
            *(model_of(conversation.run) for _, conversation, _ in self.ended),
            *(
                ModelInHand(experiment.experiment_id, grader.model.id)
                for experiment in self.graded
                if (grader := experiment.manifest.use_llm_exploratory)
            ),
            *(
                ModelInHand(each.conversation.run.experiment_id, each.student.entry.id)
                for each in self.due
                if each.student is not None
            ),
        }

    @property
    def graded(self) -> list[Experiment]:
        """The experiments with a grader, one for each run to carry out or to grade."""
        conversations = (
            *(run.conversation for run in self.due),
            *(conversation for _, conversation, _ in self.ended),
        )
        return [each.experiment for each in conversations if each.is_graded]

    @property
    def open(self) -> int:
        """How many requests have no outcome yet."""
        return len(self.due) + len(self.joins) + len(self.ended)


@dataclass(frozen=True, slots=True)
class RequestSorter:
    """Decides by what is stored what to do about each request."""

    stored: Responses
    experiments: ExperimentCache
    pool: ModelPool
    in_hand: RunsInHand
    outcomes: RunOutcomes
    troubles: Troubles

    async def sort(self, batch: Sequence[Work[RunRequested]]) -> SortedRequests:
        """Sort requests: runs to carry out, which are in hand then, and outcomes of the others."""
        stopped = await self.experiments.stopped(
            {work.event.data.run.experiment_id for work in batch}
        )
        sorted_ = SortedRequests()
        going_on: list[Work[RunRequested]] = []
        for work in batch:
            # Left in the queue, these requests would wait there for a month.
            if work.event.data.run.experiment_id in stopped:
                sorted_.settled.append(Handled(work))
            else:
                going_on.append(work)
        run_ids = {work.event.data.run.run_id for work in going_on}
        experiments = await self.experiments.named(_groups(going_on))
        going_on = _planned(going_on, experiments, sorted_)
        stored = await self.stored.responses(run_ids)
        failures = await self.stored.recorded_failures(run_ids)
        for work in going_on:
            run, retry = work.event.data.run, retry_of(work)
            responses, failure = stored.get(run.run_id, ()), failures.get(run.run_id)
            experiment = experiments.get(run.experiment_id)
            is_answered = bool(responses) and responses[-1].last_turn
            has_failed = failure is not None and failure.retry >= retry
            if (is_answered or has_failed) and _is_graded(experiment):
                conversation = Conversation(run, experiment, list(responses))
                sorted_.ended.append((work, conversation, None if is_answered else failure))
            elif is_answered:
                sorted_.settled.append(self.outcomes.of_answered(work, responses))
            elif failure is not None and has_failed:
                sorted_.settled.append(self.outcomes.of_failed(work, responses, failure))
            elif experiment is None:
                reason = f"experiment {run.experiment_id} is not in the store"
                sorted_.settled.append(Rejected(work, reason))
            # D-116: rejecting would dead-letter a good plan.
            elif isinstance(experiment, NotUnderstood):
                sorted_.settled.append(Postponed(work, NEWER_SECONDS, experiment.reason))
            elif in_hand := self.in_hand.get(run.run_id):
                sorted_.joins.append((work, in_hand))
            else:
                conversation = Conversation(run, experiment, _in_a_row(responses))
                self._take_in_hand(work, conversation, experiment, sorted_)
        return sorted_

    def _take_in_hand(
        self,
        work: Work[RunRequested],
        conversation: Conversation,
        experiment: Experiment,
        sorted_: SortedRequests,
    ) -> None:
        plays = experiment.manifest.student
        try:
            model = self.pool.model(experiment, conversation.run.model_id)
            student = None if plays is None else self.pool.student(experiment, plays)
        except InvalidInput as error:
            failure = not_callable(error)
            conversation.ended_by = TurnFailed(1, failure, 0)
            sorted_.ended.append((work, conversation, None))
            self.troubles.failed(conversation.run, failure, 0, 0, None)
        else:
            run = RunInHand(work, model, conversation, student)
            self.in_hand.take(run)
            sorted_.due.append(run)


def _groups(requests: Iterable[Work[RunRequested]]) -> Mapping[str, set[str]]:
    """Return the groups of requests, by their experiments."""
    groups = defaultdict[str, set[str]](set)
    for work in requests:
        groups[work.event.data.run.experiment_id].add(work.event.partitionkey)
    return groups


def _planned(
    requests: Iterable[Work[RunRequested]],
    experiments: Mapping[str, Experiment | NotUnderstood],
    sorted_: SortedRequests,
) -> list[Work[RunRequested]]:
    """Return the requests of planned runs; rejects those of others: each would be a paid call."""
    planned = []
    for work in requests:
        run = work.event.data.run
        experiment = experiments.get(run.experiment_id)
        why = experiment.outside_plan(run) if isinstance(experiment, Experiment) else None
        if why is None:
            planned.append(work)
        else:
            sorted_.settled.append(Rejected(work, why))
    return planned


def _is_graded(experiment: Experiment | NotUnderstood | None) -> TypeGuard[Experiment]:
    if not isinstance(experiment, Experiment):
        return False
    return experiment.manifest.use_llm_exploratory is not None


def _in_a_row(responses: Sequence[Response]) -> list[Response]:
    """Return the responses before the first turn that this version cannot read."""
    return [each for turn, each in enumerate(responses, start=1) if each.turn == turn]
