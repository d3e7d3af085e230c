"""What a runner tells of runs: their events, and the outcomes of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.consuming.outcomes import Handled, Outcome, Postponed, Work
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.events.event_types import ResponseRecorded, RunFailed, RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_runner.conversations.conversation import (
    Conversation,
    Ending,
    OutOfBudget,
    Stopped,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.conversations.response_grader import ResponseGrader
from socratic_runner.leases.recorder import Recorder

SOURCE: Final = "socratic-runner"

MESSAGE_LENGTH: Final = 1_000
"""The most characters of a provider's message that a failure keeps."""


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """Makes the outcomes of requests."""

    recorder: Recorder
    clock: Clock
    busy_delay: float
    """Seconds before the broker redelivers a run that another runner holds."""

    grader: ResponseGrader

    async def of_ended(
        self,
        work: Work[RunRequested],
        conversation: Conversation,
        failure: RecordedFailure | None = None,
        published: int = 0,
    ) -> Outcome:
        """Return the outcome of a run that ended, of `failure` if that is stored.

        A new failure is stored first, and then the responses are graded. The runner has published
        the first so many of the responses.
        """
        ending = conversation.ended_by
        if failure is None and isinstance(ending, TurnFailed):
            failure = _failure(conversation, ending, retry_of(work))
            await self.recorder.record_failures([failure])
        if failure is not None or conversation.is_answered:
            if stopped := await self.grader.grade(conversation):
                return self._of_unfinished(work, stopped)
            responses = conversation.responses[published:]
            if failure is not None:
                return self.of_failed(work, responses, failure)
            return self.of_answered(work, responses)
        if isinstance(ending, OutOfBudget | Stopped) and not conversation.is_graded:
            return self.of_answered(work, conversation.responses[published:])
        return self._of_unfinished(work, ending)

    def _of_unfinished(self, work: Work[RunRequested], ending: Ending | None) -> Outcome:
        """Return the outcome of a run that something stopped for now."""
        match ending:
            case TurnHeldElsewhere() as held:
                return Postponed(work, self.busy_delay, held.reason)
            case TurnPutOff() as put_off:
                return Postponed(work, put_off.seconds, put_off.reason)
            case OutOfBudget() | Stopped():
                # A failure would blame the model, a postponement would go round and round.
                # Out of budget or stopped it is neither done nor failed: the run is requested again
                # once the budget is raised, or the experiment resumed.
                return Handled(work)
            case _:
                return Postponed(work, 0.0, "the first delivery of this run was given up")

    def of_answered(self, work: Work[RunRequested], responses: Sequence[Response]) -> Handled:
        """Return the outcome of a run that needs nothing more, with these of its responses."""
        return Handled(work, recorded(work, responses))

    def of_failed(
        self, work: Work[RunRequested], responses: Sequence[Response], failure: RecordedFailure
    ) -> Handled:
        """Return the outcome of a run whose failure is stored."""
        cause, now = work.event.id, self.clock.now()
        failed = RunFailed.of(failure.failure, source=SOURCE, time=now, cause=cause)
        return Handled(work, (*recorded(work, responses), failed))


def recorded(
    work: Work[RunRequested], responses: Sequence[Response]
) -> tuple[ResponseRecorded, ...]:
    """Return the events of stored responses that a request caused."""
    cause = work.event.id
    return tuple(ResponseRecorded.of(each, source=SOURCE, cause=cause) for each in responses)


def retry_of(work: Work[RunRequested]) -> int:
    """Return how often the run was tried before, according to its request."""
    return work.event.data.retry or 0


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
