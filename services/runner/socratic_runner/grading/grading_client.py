"""The client of a grader: a reply without a grade is a failed call."""

from __future__ import annotations

from typing import Final

from socratic_bench.domain.grading import HIGHEST_GRADE, grade_of
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.scoring.statuses import Status

SHOWN_CHARACTERS: Final = 60
"""The most of a reply without a grade that its failure repeats."""


class GradingClient(ModelClient):
    """Passes on the replies that hold a grade."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def concurrency(self) -> int | None:
        return self._client.concurrency

    @property
    def answers_at_once(self) -> bool:
        return self._client.answers_at_once

    async def ask(self, question: Question) -> Reply:
        """Return a finished reply with a grade.

        Raises what the grader's client raises, and ModelCallFailed for any other reply.
        """
        reply = await self._client.ask(question)
        # A reply that was cut off may hold the first digit of 10.
        if reply.status is Status.OK and grade_of(reply.text) is not None:
            return reply
        shown = reply.text[:SHOWN_CHARACTERS]
        message = (
            f"the grader's reply ({reply.status}) is not a whole number from 0 to "
            f"{HIGHEST_GRADE}: {shown!r}"
        )
        raise ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)

    async def close(self) -> None:
        await self._client.close()
