"""Scores recorded responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from socratic_bench.consuming.outcomes import Handled, Outcome, Rejected, Work
from socratic_bench.domain.response import Response
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import BrokenPlugin, BrokenProfile, UngradedResponse, UnknownProfile
from socratic_bench.events.event_types import ResponseRecorded, ResponseScored
from socratic_bench.ports.clock import Clock
from socratic_bench.scoring.exchange import UNGRADED
from socratic_bench.scoring.profiles import needs_grade
from socratic_bench.scoring.score import Score, score

SOURCE = "socratic-judge"


class ResponseRecordedHandler:
    """Handles `response.recorded`: scores it and publishes `response.scored`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(
        self, batch: Sequence[Work[ResponseRecorded]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Score a batch.

        An unknown or broken profile rejects its response, and so does a missing grading.
        """
        yield [self._outcome(work) for work in batch]

    def _outcome(self, work: Work[ResponseRecorded]) -> Outcome:
        recorded = work.event
        if not recorded.data.run.is_named_by_its_parts:
            # Who may publish may invent a run; the curator knows the plan, the judge this much.
            return Rejected(work, f"not in the plan: the id {recorded.data.run.run_id!r}")
        try:
            scored = judge(recorded.data)
        except (UnknownProfile, BrokenPlugin, BrokenProfile, UngradedResponse) as error:
            return Rejected(work, str(error))
        event = ResponseScored.of(scored, source=SOURCE, time=self._clock.now(), cause=recorded.id)
        return Handled(work, (event,))


def judge(response: Response) -> ScoredResponse:
    """Return the score of a response under its profile.

    Its vectors and its overall are None if the response's status has no score. Raises
    UnknownProfile, BrokenPlugin or BrokenProfile, and UngradedResponse for a response without a
    grading under a profile that needs a grade.
    """
    grading = response.grading
    figures = score(
        response.text,
        output_tokens=response.usage.visible_output_tokens,
        status=response.status,
        dimension=response.run.dimension,
        student_message=response.student_message,
        earlier_turns=response.earlier_turns,
        grade=None if grading is None else grading.score,
        answer_key=response.answer_key,
        profile=response.profile,
        raw=False,
    )
    if grading is None and _is_ungraded(figures):
        # The first score stays: this one would leave the response without its grade for good.
        raise UngradedResponse(
            f"turn {response.turn} of run {response.run.run_id} has no grading, and profile "
            f"{response.profile} needs one: the runner adds it"
        )
    return ScoredResponse(
        run=response.run,
        turn=response.turn,
        last_turn=response.last_turn,
        profile=response.profile,
        status=figures.status,
        error_kind=UNGRADED if _is_ungraded(figures) else response.error_kind,
        vectors=figures.vectors,
        overall=figures.overall,
        counts={**figures.counts, **response.note_counts()},
        usage=response.usage,
        latency_ms=response.latency_ms,
        cost_nanodollars=response.cost_nanodollars,
    )


def _is_ungraded(figures: Score) -> bool:
    """Whether a score has vectors and no overall for want of a grade."""
    return figures.vectors is not None and not figures.scored and needs_grade(figures.profile)
