"""Carrying out runs: turn after turn, each response stored before anything else happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from socratic_bench.domain.manifest import Manifest
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import Question, Reply
from socratic_runner.calls import Calls
from socratic_runner.clients import Tutor
from socratic_runner.conversation import Conversation, NoRoomYet, TurnFailed
from socratic_runner.limits.retries import Retries

BUDGET_PAUSE = 0.5
"""Seconds until a call that the budget has no room for is tried again."""


@dataclass(frozen=True, slots=True)
class TurnTaking:
    """Carries out conversations with one tutor.

    Those given together take their turns together: one transaction leases a turn of all, another
    records it. That pays where the tutor answers at once, and would make them wait for each other
    where it does not; such a tutor's conversations are carried out each by itself.
    """

    calls: Calls
    record: Callable[[Sequence[Response]], Awaitable[Sequence[Response]]]
    """Store responses; returns what is stored for their turns, since the first write wins."""

    clock: Clock
    new_retries: Callable[[], Retries]
    """How often, and when, the calls for one turn are tried again."""

    draining: asyncio.Event
    """Once set, calls in flight are finished and no other is begun."""

    def longest(self, run: Run, manifest: Manifest) -> float:
        """Seconds that whoever has a run may be at work on it; after that it is done, or they are
        dead and their lease has run out. Waiting for the first call is not in it.
        """
        limits = manifest.models_by_id[run.model_id].limits
        margin = self.calls.lease_margin.total_seconds()
        return limits.run_timeout_seconds + limits.timeout_seconds + margin

    async def carry_out(
        self, tutor: Tutor, conversations: Sequence[Conversation]
    ) -> AsyncGenerator[None, None]:
        """Take turn after turn until none is open; yields after each, when it is recorded."""
        while going_on := [each for each in conversations if each.open]:
            answered = await self._take_turn(tutor, going_on)
            yield
            if not answered and any(each.open for each in going_on):
                await self._wait(BUDGET_PAUSE)

    async def _take_turn(self, tutor: Tutor, conversations: Sequence[Conversation]) -> int:
        """One turn of each; returns how many were answered.

        A conversation that got no answer is ended, or there is no room for it in the budget yet.
        """
        questions = {each: each.question() for each in conversations}
        replies = await self._ask(tutor, questions)
        now = self.clock.now()
        responses = [
            each.response(questions[each], reply, tutor, now) for each, reply in replies.items()
        ]
        if responses:
            for each, stored in zip(replies, await self.record(responses), strict=True):
                each.answered(stored)
        return len(responses)

    async def _ask(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Reply]:
        """The replies that came; failed calls are tried again for as long as that is of use."""
        replies: dict[Conversation, Reply] = {}
        retries = {each: self.new_retries() for each in questions}
        while questions:
            again: dict[Conversation, Question] = {}
            longest_delay = 0.0
            for each, result in (await self.calls.make(tutor, questions)).items():
                if isinstance(result, Reply):
                    replies[each] = result
                elif isinstance(result, ModelCallFailed):
                    delay = retries[each].next_delay(result)
                    if delay is None or self._comes_too_late(tutor, each, delay):
                        each.ended_by = TurnFailed(questions[each].turn, result, each.attempts)
                    else:
                        again[each] = questions[each]
                        longest_delay = max(longest_delay, delay)
                elif not isinstance(result, NoRoomYet):
                    each.ended_by = result
            questions = again
            if questions:
                # Out of the gate: a call that waits keeps none from being made.
                await self._wait(longest_delay)
        return replies

    def _comes_too_late(self, tutor: Tutor, conversation: Conversation, delay: float) -> bool:
        """Whether another try after `delay` seconds would begin after the run's deadline."""
        left = conversation.time_left(tutor, asyncio.get_running_loop().time())
        return left is not None and delay > left

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the runner drains."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.draining.wait()
