"""What a runner tells of runs: their events, and the outcomes of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.consuming.outcomes import Handled, Outcome, Postponed, Work
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_runner.conversations.conversation import (
    Conversation,
    OutOfBudget,
    Stopped,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.conversations.recorder import Recorder

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

    async def of_ended(
        self, work: Work[RunRequested], conversation: Conversation, published: int = 0
    ) -> Outcome:
        """Return the outcome of a run that ended; its failure is stored first.

        The runner has published the first so many of its responses.
        """
        responses = conversation.responses[published:]
        match conversation.ended_by:
            case TurnFailed() as ending:
                failure = _failure(conversation, ending, retry_of(work))
                await self.recorder.record_failures([failure])
                return self.of_failed(work, responses, failure)
            case TurnHeldElsewhere() as held:
                return Postponed(work, self.busy_delay, held.reason)
            case TurnPutOff() as put_off:
                return Postponed(work, put_off.seconds, put_off.reason)
            case OutOfBudget() | Stopped() | None if not conversation.open:
                # D-073: a failure would blame the model, a postponement would go round and round.
                # Out of budget or stopped it is neither done nor failed: the run is requested again
                # once the budget is raised, or the experiment resumed.
                return self.of_answered(work, responses)
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
