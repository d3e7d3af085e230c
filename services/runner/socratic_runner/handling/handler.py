"""Handles requested runs: carries them out and publishes their results."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from socratic_bench.consuming.outcomes import Emit, Failed, Handled, Outcome, Postponed, Work
from socratic_bench.events.event_types import ResponseRecorded, RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.ports.stores.responses import RecordedFailure, Responses
from socratic_runner.conversations.call_preparation import STORING_SECONDS
from socratic_runner.conversations.conversation import Conversation, Stopped, TurnFailed
from socratic_runner.conversations.conversation_runner import ConversationRunner, InstantRunner
from socratic_runner.conversations.response_grader import ResponseGrader
from socratic_runner.conversations.student_player import StudentPlayer
from socratic_runner.experiment_cache import ExperimentCache
from socratic_runner.handling.request_sorting import (
    RequestSorter,
    RunInHand,
    RunsInHand,
    SortedRequests,
)
from socratic_runner.handling.run_outcomes import RunOutcomes, recorded, retry_of
from socratic_runner.model_pool import CalledModel, ModelPool

BEGUN_AT_ONCE: Final = 100
"""Runs that begin before calls in flight get a turn on the event loop: a whole batch would hold
up their replies."""

Put = Callable[[Sequence[Outcome]], None]


class RunRequestedHandler:
    """Handles `run.requested`: calls the models, stores their replies, publishes them.

    Each run settles as soon as it is done: a slow model delays only its own runs.
    """

    def __init__(
        self,
        stored: Responses,
        experiments: ExperimentCache,
        pool: ModelPool,
        runner: ConversationRunner,
        grader: ResponseGrader,
        clock: Clock,
        *,
        busy_delay: float,
    ) -> None:
        """A run that another runner holds comes back after `busy_delay` seconds."""
        self._experiments = experiments
        self._pool = pool
        self._runner = runner
        self._instant = InstantRunner(runner)
        self._in_hand = RunsInHand()
        self._grader = grader
        self._outcomes = RunOutcomes(runner.recorder, clock, busy_delay, grader)
        self._sorter = RequestSorter(
            stored, experiments, pool, self._in_hand, self._outcomes, runner.troubles
        )

    async def __call__(
        self, batch: Sequence[Work[RunRequested]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Carry out a batch of runs; yields outcomes as soon as they are known."""
        self._pool.close_idle(self._in_use)
        self._experiments.forget_idle(self._in_use)
        requests = await self._sorter.sort(batch)
        with self._runner.leases.heartbeat.in_hand(requests.models):
            outcomes: asyncio.Queue[Sequence[Outcome]] = asyncio.Queue()
            tasks: list[asyncio.Task[None]] = []
            left = requests.open
            try:
                await self._begin(requests, tasks, outcomes.put_nowait)
                if requests.settled:
                    yield requests.settled
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
                for run in requests.due:
                    self._in_hand.forget(run)

    def longest(self) -> float:
        """Seconds that the calls in hand, and storing their replies, may take."""
        deadlines = (run.deadline for run in self._in_hand)
        return max(deadlines, default=self._grader.longest()) + STORING_SECONDS

    def _in_use(self) -> set[ModelInHand]:
        """The models whose clients are in use, graders included."""
        return self._in_hand.models() | self._grader.models()

    async def _begin(
        self, requests: SortedRequests, tasks: list[asyncio.Task[None]], put: Put
    ) -> None:
        """Carry out the runs of an instant model together, and those of others one by one.

        Adds the tasks to `tasks`.
        """
        together: defaultdict[CalledModel, list[RunInHand]] = defaultdict(list)
        tasks += (asyncio.create_task(self._join(*each, put)) for each in requests.joins)
        tasks += (asyncio.create_task(self._end(*each, put)) for each in requests.ended)
        slow = list[RunInHand]()
        for run in requests.due:
            if run.model.client.answers_at_once and run.student is None:
                together[run.model].append(run)
            else:
                slow.append(run)
        tasks += (
            asyncio.create_task(self._carry_out_together(model, runs, put))
            for model, runs in together.items()
        )
        for first in range(0, len(slow), BEGUN_AT_ONCE):
            some = slow[first : first + BEGUN_AT_ONCE]
            tasks += (asyncio.create_task(self._carry_out(run, put)) for run in some)
            await asyncio.sleep(0)

    async def _carry_out(self, run: RunInHand, put: Put) -> None:
        """Carry out one run; put exactly one final outcome."""

        def on_turn() -> None:
            if run.conversation.open and not run.conversation.is_graded:
                put([Emit(_fresh(run))])

        # Another runner may have ended between storing these and publishing them.
        if run.unpublished:
            on_turn()
        try:
            if run.student is None:
                await self._runner.run(run.model, run.conversation, on_turn)
            else:
                student = StudentPlayer(self._runner, run.student)
                await student.run(run.model, run.conversation, on_turn)
            put(
                [await self._outcomes.of_ended(run.work, run.conversation, published=run.published)]
            )
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(run.work, error)])
        finally:
            self._in_hand.forget(run)

    async def _carry_out_together(
        self, model: CalledModel, runs: Sequence[RunInHand], put: Put
    ) -> None:
        """Take turns of many runs together while the model replies; carry out the rest singly."""
        going_on, left = list(runs), list[RunInHand]()
        try:
            while going_on:
                answered = set(
                    await self._instant.take_turn(model, [each.conversation for each in going_on])
                )
                left += (each for each in going_on if each.conversation not in answered)
                turned = [each for each in going_on if each.conversation in answered]
                going_on = [each for each in turned if each.conversation.open]
                done = [each for each in turned if not each.conversation.open]
                # Each run is graded by itself.
                left += (each for each in done if each.conversation.is_graded)
                put([Emit(_fresh(each)) for each in going_on if not each.conversation.is_graded])
                put([self._done(each) for each in done if not each.conversation.is_graded])
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(each.work, error) for each in going_on])
        await asyncio.gather(*(self._carry_out(each, put) for each in left))

    async def _join(self, work: Work[RunRequested], in_hand: RunInHand, put: Put) -> None:
        """Settle a second request of a run like the first.

        A failure of the first does not answer a request to retry the run. If the first was stopped,
        the second may follow a resume of the experiment.
        """
        await self._in_hand.end_of(in_hand)
        if isinstance(in_hand.conversation.ended_by, Stopped):
            put([Postponed(work, 0.0, "an earlier request of this run was stopped")])
            return
        failed = isinstance(in_hand.conversation.ended_by, TurnFailed)
        if failed and retry_of(in_hand.work) < retry_of(work):
            put([Postponed(work, 0.0, "an earlier request of this run failed")])
        else:
            await self._end(work, in_hand.conversation, None, put)

    async def _end(
        self,
        work: Work[RunRequested],
        conversation: Conversation,
        failure: RecordedFailure | None,
        put: Put,
    ) -> None:
        """Settle a request of a run that has ended."""
        try:
            put([await self._outcomes.of_ended(work, conversation, failure)])
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(work, error)])

    def _done(self, run: RunInHand) -> Outcome:
        self._in_hand.forget(run)
        return Handled(run.work, _fresh(run))


def _fresh(run: RunInHand) -> tuple[ResponseRecorded, ...]:
    """Return the events of the responses that this runner has not published yet."""
    events = recorded(run.work, run.unpublished)
    run.published = len(run.conversation.responses)
    return events
