"""What the runner does with requested runs."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from socratic_bench.consuming.outcomes import (
    Emit,
    Failed,
    Handled,
    Outcome,
    Postponed,
    Rejected,
    Work,
)
from socratic_bench.domain.manifest import Experiment, Manifest
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.errors import InvalidInput, MissingCredential, ModelCallFailed
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import FailureKind
from socratic_bench.ports.store import Store
from socratic_runner.clients import Tutor, TutorPool
from socratic_runner.conversation import (
    Conversation,
    OutOfBudget,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.experiments import Experiments
from socratic_runner.turn_taking import TurnTaking

SOURCE = "socratic-runner"

MESSAGE_LENGTH = 1_000
"""Characters of a provider's message that are kept with a failure."""


@dataclass(slots=True)
class DueRun:
    """A run in hand."""

    work: Work[RunRequested]
    tutor: Tutor
    conversation: Conversation
    published: int = 0
    """How many of its responses were published since it was taken in hand."""


class RunCarrier:
    """Handles `run.requested`: asks the models, records the responses, publishes them.

    Runs are settled as soon as they are done: a slow model holds up only its own.
    """

    def __init__(
        self,
        store: Store,
        experiments: Experiments,
        tutors: TutorPool,
        turn_taking: TurnTaking,
        clock: Clock,
        *,
        busy_delay: float,
    ) -> None:
        """`busy_delay`: see `_busy`."""
        self._store = store
        self._experiments = experiments
        self._tutors = tutors
        self._turn_taking = turn_taking
        self._clock = clock
        self._busy_delay = busy_delay
        self._in_hand: set[str] = set()

    async def __call__(
        self, batch: Sequence[Work[RunRequested]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Carry out a batch of runs; yields outcomes as they come."""
        experiments = await self._experiments.named(
            {work.event.data.run.experiment_id for work in batch}
        )
        stored = await self._store.responses({work.event.data.run.run_id for work in batch})
        due, settled = self._divide(batch, experiments, stored)
        outcomes: asyncio.Queue[Sequence[Outcome]] = asyncio.Queue()
        tasks = [
            asyncio.create_task(self._carry_out(tutor, together, outcomes.put_nowait))
            for tutor, together in self._side_by_side(due)
        ]
        open_runs = len(due)
        try:
            if settled:
                yield settled
            while open_runs:
                ready = list(await outcomes.get())
                while not outcomes.empty():
                    ready.extend(outcomes.get_nowait())
                open_runs -= sum(not isinstance(outcome, Emit) for outcome in ready)
                yield ready
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._in_hand.difference_update(each.conversation.run.run_id for each in due)

    def _divide(
        self,
        batch: Sequence[Work[RunRequested]],
        experiments: Mapping[str, Experiment],
        stored: Mapping[str, Sequence[Response]],
    ) -> tuple[list[DueRun], list[Outcome]]:
        """The runs to carry out, and what can be said of the others already."""
        due: list[DueRun] = []
        settled: list[Outcome] = []
        for work in batch:
            run, cause = work.event.data.run, work.event.id
            responses = stored.get(run.run_id, ())
            experiment = experiments.get(run.experiment_id)
            if responses and responses[-1].last_turn:
                settled.append(Handled(work, tuple(_recorded(each, cause) for each in responses)))
            elif experiment is None:
                reason = f"experiment {run.experiment_id} is not in the store"
                settled.append(Rejected(work, reason))
            elif run.run_id in self._in_hand:
                reason = "this run is in hand already"
                settled.append(self._busy(work, experiment.manifest, reason))
            else:
                conversation = Conversation(run, experiment.manifest, list(responses))
                try:
                    tutor = self._tutors.tutor(experiment, run.model_id)
                except InvalidInput as error:
                    settled.append(self._failed(work, conversation, _not_callable(error)))
                else:
                    self._in_hand.add(run.run_id)
                    due.append(DueRun(work, tutor, conversation))
        return due, settled

    def _side_by_side(self, due: Sequence[DueRun]) -> Iterator[tuple[Tutor, list[DueRun]]]:
        """What is carried out together: a tutor's runs if it answers at once, else each alone."""
        at_once: defaultdict[Tutor, list[DueRun]] = defaultdict(list)
        for each in due:
            if each.tutor.client.answers_at_once:
                at_once[each.tutor].append(each)
            else:
                yield each.tutor, [each]
        yield from at_once.items()

    async def _carry_out(
        self,
        tutor: Tutor,
        together: Sequence[DueRun],
        put: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Carry out runs of one tutor; puts exactly one final outcome for each."""
        going_on = list(together)
        turns = self._turn_taking.carry_out(tutor, [each.conversation for each in together])
        try:
            async with aclosing(turns):
                async for _ in turns:
                    put([outcome for each in going_on for outcome in self._outcomes(each)])
                    going_on = [each for each in going_on if each.conversation.open]
        except Exception as error:  # noqa: BLE001 - the others of the batch go on
            put([Failed(each.work, error) for each in going_on])

    def _outcomes(self, due: DueRun) -> Sequence[Outcome]:
        """What is to be said of a run after one of its turns."""
        conversation, work = due.conversation, due.work
        fresh = conversation.responses[due.published :]
        due.published = len(conversation.responses)
        publish = tuple(_recorded(response, work.event.id) for response in fresh)
        emitted = [Emit(publish)] if publish else []
        match conversation.ended_by:
            case None if conversation.open:
                return emitted
            case None:
                return [Handled(work, publish)]
            case TurnFailed() as failure:
                return [self._failed(work, conversation, failure, publish)]
            case TurnHeldElsewhere() as held:
                return [*emitted, self._busy(work, conversation.manifest, str(held))]
            case TurnPutOff() as put_off:
                return [*emitted, Postponed(work, 0.0, str(put_off))]
            case OutOfBudget():
                # Neither done nor failed: it is requested again once the budget is raised.
                return [Handled(work, publish)]

    def _busy(self, work: Work[RunRequested], manifest: Manifest, reason: str) -> Postponed:
        """Look again at a run that is being carried out, after `busy_delay` seconds.

        The delay doubles with every delivery, up to the longest that somebody may be at work on
        the run: it comes through after they have died, long before it was delivered as often as a
        queue allows.
        """
        longest = self._turn_taking.longest(work.event.data.run, manifest)
        delay = self._busy_delay * 2.0 ** min(work.attempt - 1, 30)
        return Postponed(work, min(delay, longest), reason)

    def _failed(
        self,
        work: Work[RunRequested],
        conversation: Conversation,
        failure: TurnFailed,
        publish: tuple[ResponseRecorded, ...] = (),
    ) -> Outcome:
        fact = RunFailure(
            run=conversation.run,
            turn=failure.turn,
            profile=conversation.manifest.profile,
            kind=failure.kind,
            message=str(failure)[:MESSAGE_LENGTH].encode(errors="replace").decode(),
            attempts=failure.attempts,
        )
        now, cause = self._clock.now(), work.event.id
        return Handled(work, (*publish, RunFailed.of(fact, source=SOURCE, time=now, cause=cause)))


def _not_callable(error: InvalidInput) -> TurnFailed:
    """The failure of a model that cannot be called at all."""
    no_key = isinstance(error, MissingCredential)
    kind = FailureKind.AUTH if no_key else FailureKind.BAD_REQUEST
    return TurnFailed(1, ModelCallFailed(kind, str(error), retryable=False), 0)


def _recorded(response: Response, cause: str) -> ResponseRecorded:
    return ResponseRecorded.of(response, source=SOURCE, cause=cause)
