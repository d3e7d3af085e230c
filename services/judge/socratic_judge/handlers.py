"""Scores recorded responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from socratic_bench.consuming.outcomes import Handled, Outcome, Rejected, Work
from socratic_bench.domain.response import Response
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import BrokenPlugin, BrokenProfile, UnknownProfile
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.response_scored import ResponseScored
from socratic_bench.ports.clock import Clock
from socratic_bench.scoring.score import score

SOURCE = "socratic-judge"


class ResponseRecordedHandler:
    """Handles `response.recorded`: scores it and publishes `response.scored`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(
        self, batch: Sequence[Work[ResponseRecorded]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Score a batch. An unknown or broken profile rejects its response."""
        yield [self._outcome(work) for work in batch]

    def _outcome(self, work: Work[ResponseRecorded]) -> Outcome:
        recorded = work.event
        try:
            scored = judge(recorded.data)
        except (UnknownProfile, BrokenPlugin, BrokenProfile) as error:
            return Rejected(work, str(error))
        event = ResponseScored.of(scored, source=SOURCE, time=self._clock.now(), cause=recorded.id)
        return Handled(work, (event,))


def judge(response: Response) -> ScoredResponse:
    """Return the score of a response under its profile; None if its status has no score.

    Raises UnknownProfile, BrokenPlugin or BrokenProfile.
    """
    figures = score(
        response.text,
        output_tokens=response.usage.visible_output_tokens,
        status=response.status,
        dimension=response.run.dimension,
        student_message=response.student_message,
        earlier_turns=response.earlier_turns,
        profile=response.profile,
    )
    return ScoredResponse(
        run=response.run,
        turn=response.turn,
        last_turn=response.last_turn,
        profile=response.profile,
        status=figures.status,
        error_kind=response.error_kind,
        vectors=figures.vectors,
        overall=figures.overall,
        counts=figures.counts,
        usage=response.usage,
        latency_ms=response.latency_ms,
        cost_nanodollars=response.cost_nanodollars,
    )
