"""Handles requested runs: carries them out and publishes their results."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from socratic_bench.consuming.outcomes import (
    Emit,
    Failed,
    Handled,
    Outcome,
    Postponed,
    Rejected,
    Work,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.errors import FailureKind, InvalidInput, MissingCredential, ModelCallFailed
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.ports.stores.responses import RecordedFailure, Responses
from socratic_runner.clients import Tutor, TutorPool
from socratic_runner.conversations.conversation import (
    Conversation,
    OutOfBudget,
    Stopped,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.conversations.conversation_runner import ConversationRunner
from socratic_runner.conversations.instant_runner import InstantRunner
from socratic_runner.conversations.leases import LeaseBook
from socratic_runner.experiment_cache import ExperimentCache, NotUnderstood
from socratic_runner.troubles import model_of

SOURCE: Final = "socratic-runner"

MESSAGE_LENGTH: Final = 1_000
"""The most characters of a provider's message that a failure keeps."""

STORING_SECONDS: Final = 10.0

NEWER_SECONDS: Final = 60.0
"""Seconds before the broker redelivers a run that only a newer version can carry out."""

Put = Callable[[Sequence[Outcome]], None]


@dataclass(slots=True, eq=False)
class RunInHand:
    """A run that is being carried out."""

    work: Work[RunRequested]
    tutor: Tutor
    conversation: Conversation
    published: int = 0
    """How many of its responses this runner has published."""

    on_end: asyncio.Event | None = None
    """Set at its end if another request of the run waits for it."""

    @property
    def model(self) -> ModelInHand:
        return model_of(self.conversation.run)


@dataclass(slots=True)
class _Divided:
    """A batch of requests, sorted by their treatment."""

    settled: list[Outcome] = field(default_factory=list)
    due: list[RunInHand] = field(default_factory=list)
    joins: list[tuple[Work[RunRequested], RunInHand]] = field(default_factory=list)
    """Requests of runs that this runner carries out already."""

    ended: list[tuple[Work[RunRequested], Conversation]] = field(default_factory=list)
    """Runs whose model cannot be called."""

    @property
    def models(self) -> set[ModelInHand]:
        """The models of the runs in hand."""
        return {
            *(each.model for each in self.due),
            *(model_of(conversation.run) for _, conversation in self.ended),
        }

    @property
    def open(self) -> int:
        """How many requests have no outcome yet."""
        return len(self.due) + len(self.joins) + len(self.ended)


class RunRequestedHandler:
    """Handles `run.requested`: calls the models, stores their replies, publishes them.

    Each run settles as soon as it is done: a slow model delays only its own runs.
    """

    def __init__(
        self,
        responses: Responses,
        experiments: ExperimentCache,
        tutors: TutorPool,
        leases: LeaseBook,
        runner: ConversationRunner,
        clock: Clock,
        *,
        busy_delay: float,
    ) -> None:
        """A run that another runner holds comes back after `busy_delay` seconds."""
        self._responses = responses
        self._experiments = experiments
        self._tutors = tutors
        self._leases = leases
        self._runner = runner
        self._instant = InstantRunner(leases, runner)
        self._clock = clock
        self._busy_delay = busy_delay
        self._in_hand: dict[str, RunInHand] = {}

    async def __call__(
        self, batch: Sequence[Work[RunRequested]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Carry out a batch of runs; yields outcomes as soon as they are known."""
        self._tutors.close_idle(lambda: {run.model for run in self._in_hand.values()})
        divided = await self._divide(batch)
        with self._leases.in_hand(divided.models):
            outcomes: asyncio.Queue[Sequence[Outcome]] = asyncio.Queue()
            tasks = self._begin(divided, outcomes.put_nowait)
            left = divided.open
            try:
                if divided.settled:
                    yield divided.settled
                while left:
                    ready = list(await outcomes.get())
                    while not outcomes.empty():
                        ready.extend(outcomes.get_nowait())
                    left -= sum(not isinstance(outcome, Emit) for outcome in ready)
                    yield ready
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for run in divided.due:
                    self._forget(run)

    def longest(self) -> float:
        """Seconds that the calls in hand, and storing their replies, may take."""
        deadlines = (run.tutor.deadline for run in self._in_hand.values())
        return max(deadlines, default=0.0) + STORING_SECONDS

    async def _divide(self, batch: Sequence[Work[RunRequested]]) -> _Divided:
        """Sort requests: runs to carry out, and outcomes of the others."""
        stopped = await self._experiments.stopped(
            {work.event.data.run.experiment_id for work in batch}
        )
        divided = _Divided()
        going_on: list[Work[RunRequested]] = []
        for work in batch:
            # D-124: left in the queue, these requests would wait there for a month.
            if work.event.data.run.experiment_id in stopped:
                divided.settled.append(Handled(work))
            else:
                going_on.append(work)
        run_ids = {work.event.data.run.run_id for work in going_on}
        experiments = await self._experiments.named(
            {work.event.data.run.experiment_id for work in going_on}
        )
        stored = await self._responses.responses(run_ids)
        failures = await self._responses.recorded_failures(run_ids)
        for work in going_on:
            run, retry = work.event.data.run, _retry_of(work)
            responses, failure = stored.get(run.run_id, ()), failures.get(run.run_id)
            experiment = experiments.get(run.experiment_id)
            if responses and responses[-1].last_turn:
                divided.settled.append(Handled(work, self._events(work, responses)))
            elif failure is not None and failure.retry >= retry:
                divided.settled.append(Handled(work, self._events(work, responses, failure)))
            elif experiment is None:
                reason = f"experiment {run.experiment_id} is not in the store"
                divided.settled.append(Rejected(work, reason))
            # D-116: rejecting would dead-letter a good plan.
            elif isinstance(experiment, NotUnderstood):
                divided.settled.append(Postponed(work, NEWER_SECONDS, experiment.reason))
            elif in_hand := self._in_hand.get(run.run_id):
                divided.joins.append((work, in_hand))
            else:
                conversation = Conversation(run, experiment, _in_a_row(responses))
                self._take_in_hand(work, conversation, experiment, divided)
        return divided

    def _take_in_hand(
        self,
        work: Work[RunRequested],
        conversation: Conversation,
        experiment: Experiment,
        divided: _Divided,
    ) -> None:
        try:
            tutor = self._tutors.tutor(experiment, conversation.run.model_id)
        except InvalidInput as error:
            failure = not_callable(error)
            conversation.ended_by = TurnFailed(1, failure, 0)
            divided.ended.append((work, conversation))
            self._runner.troubles.failed(conversation.run, failure, 0, 0, None)
        else:
            run = RunInHand(work, tutor, conversation)
            self._in_hand[conversation.run.run_id] = run
            divided.due.append(run)

    def _begin(self, divided: _Divided, put: Put) -> list[asyncio.Task[None]]:
        """Carry out the runs of an instant tutor together, and those of others one by one."""
        together: defaultdict[Tutor, list[RunInHand]] = defaultdict(list)
        tasks = [
            *(asyncio.create_task(self._join(*each, put)) for each in divided.joins),
            *(asyncio.create_task(self._end(*each, put)) for each in divided.ended),
        ]
        for run in divided.due:
            if run.tutor.client.answers_at_once:
                together[run.tutor].append(run)
            else:
                tasks.append(asyncio.create_task(self._carry_out(run, put)))
        tasks += (
            asyncio.create_task(self._carry_out_together(tutor, runs, put))
            for tutor, runs in together.items()
        )
        return tasks

    async def _carry_out(self, run: RunInHand, put: Put) -> None:
        """Carry out one run; put exactly one final outcome."""

        def on_turn() -> None:
            if run.conversation.open:
                put([Emit(self._fresh(run))])

        try:
            await self._runner.run(run.tutor, run.conversation, on_turn)
            put([await self._final(run.work, run.conversation, run.published)])
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(run.work, error)])
        finally:
            self._forget(run)

    async def _carry_out_together(self, tutor: Tutor, runs: Sequence[RunInHand], put: Put) -> None:
        """Take turns of many runs together while the tutor replies; carry out the rest singly."""
        going_on, left = list(runs), list[RunInHand]()
        try:
            while going_on:
                answered = set(
                    await self._instant.take_turn(tutor, [each.conversation for each in going_on])
                )
                left += (each for each in going_on if each.conversation not in answered)
                turned = [each for each in going_on if each.conversation in answered]
                going_on = [each for each in turned if each.conversation.open]
                put([Emit(self._fresh(each)) for each in going_on])
                put([self._done(each) for each in turned if not each.conversation.open])
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(each.work, error) for each in going_on])
        await asyncio.gather(*(self._carry_out(each, put) for each in left))

    async def _join(self, work: Work[RunRequested], in_hand: RunInHand, put: Put) -> None:
        """Settle a second request of a run like the first.

        A failure of the first does not answer a request to retry the run. If the first was stopped,
        the second may follow a resume of the experiment.
        """
        if self._in_hand.get(in_hand.conversation.run.run_id) is in_hand:
            in_hand.on_end = in_hand.on_end or asyncio.Event()
            await in_hand.on_end.wait()
        if isinstance(in_hand.conversation.ended_by, Stopped):
            put([Postponed(work, 0.0, "an earlier request of this run was stopped")])
            return
        failed = isinstance(in_hand.conversation.ended_by, TurnFailed)
        if failed and _retry_of(in_hand.work) < _retry_of(work):
            put([Postponed(work, 0.0, "an earlier request of this run failed")])
        else:
            await self._end(work, in_hand.conversation, put)

    async def _end(self, work: Work[RunRequested], conversation: Conversation, put: Put) -> None:
        """Settle a request of a run that has ended."""
        try:
            put([await self._final(work, conversation)])
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(work, error)])

    def _done(self, run: RunInHand) -> Outcome:
        self._forget(run)
        return Handled(run.work, self._fresh(run))

    def _forget(self, run: RunInHand) -> None:
        run_id = run.conversation.run.run_id
        if self._in_hand.get(run_id) is run:
            del self._in_hand[run_id]
            if run.on_end is not None:
                run.on_end.set()

    def _fresh(self, run: RunInHand) -> tuple[ResponseRecorded, ...]:
        """Return the responses of a run that this runner has not published yet."""
        fresh = run.conversation.responses[run.published :]
        run.published = len(run.conversation.responses)
        return tuple(_recorded(response, run.work.event.id) for response in fresh)

    async def _final(
        self, work: Work[RunRequested], conversation: Conversation, published: int = 0
    ) -> Outcome:
        """Return the outcome of a run that ended; its failure is stored first."""
        responses = conversation.responses[published:]
        match conversation.ended_by:
            case TurnFailed() as ending:
                failure = _failure(conversation, ending, _retry_of(work))
                await self._leases.record_failures([failure])
                return Handled(work, self._events(work, responses, failure))
            case TurnHeldElsewhere() as held:
                return Postponed(work, self._busy_delay, held.reason)
            case TurnPutOff() as put_off:
                return Postponed(work, 0.0, put_off.reason)
            case OutOfBudget() | Stopped() | None if not conversation.open:
                # D-073: a failure would blame the model, a postponement would go round and round.
                # Out of budget or stopped it is neither done nor failed: the run is requested again
                # once the budget is raised, or the experiment resumed.
                return Handled(work, self._events(work, responses))
            case _:
                return Postponed(work, 0.0, "the first delivery of this run was given up")

    def _events(
        self,
        work: Work[RunRequested],
        responses: Sequence[Response],
        failure: RecordedFailure | None = None,
    ) -> tuple[ResponseRecorded | RunFailed, ...]:
        cause = work.event.id
        recorded = tuple(_recorded(each, cause) for each in responses)
        if failure is None:
            return recorded
        now = self._clock.now()
        return (*recorded, RunFailed.of(failure.failure, source=SOURCE, time=now, cause=cause))


def _retry_of(work: Work[RunRequested]) -> int:
    """Return how often the run was tried before, according to its request."""
    return work.event.data.retry or 0


def _in_a_row(responses: Sequence[Response]) -> list[Response]:
    """Return the responses before the first turn that this version cannot read."""
    return [each for turn, each in enumerate(responses, start=1) if each.turn == turn]


def _failure(conversation: Conversation, ending: TurnFailed, retry: int) -> RecordedFailure:
    failure = RunFailure(
        run=conversation.run,
        turn=ending.turn,
        profile=conversation.manifest.profile,
        kind=ending.failure.kind,
        message=str(ending.failure)[:MESSAGE_LENGTH].encode(errors="replace").decode(),
        attempts=ending.attempts,
    )
    return RecordedFailure(failure, retry)


def not_callable(error: InvalidInput) -> ModelCallFailed:
    """Return the failure of a model that cannot be called."""
    no_key = isinstance(error, MissingCredential)
    kind = FailureKind.AUTH if no_key else FailureKind.BAD_REQUEST
    return ModelCallFailed(kind, str(error), retryable=False)


def _recorded(response: Response, cause: str) -> ResponseRecorded:
    return ResponseRecorded.of(response, source=SOURCE, cause=cause)
