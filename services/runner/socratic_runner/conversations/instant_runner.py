"""Runs of models that answer at once, such as the reference tutors: many in one transaction.

Their calls take no time, so the store is the only cost. The conversation runner handles every case
but a plain reply: a turn that another runner holds or whose reply is on its way to the store, an
exhausted budget, a failed call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from socratic_bench.concurrency.thawing_timeout import ThawingTimeout
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.stores.leases import CallEnd
from socratic_runner.conversations.asking import ask
from socratic_runner.conversations.conversation import Conversation
from socratic_runner.conversations.conversation_runner import ConversationRunner
from socratic_runner.conversations.failure_classes import MAY_BE_BILLED
from socratic_runner.conversations.recorder import Recorded
from socratic_runner.model_pool import CalledModel


@dataclass(frozen=True, slots=True)
class InstantRunner:
    """Takes turns of many runs together."""

    runner: ConversationRunner

    async def take_turn(
        self, model: CalledModel, conversations: Sequence[Conversation]
    ) -> list[Conversation]:
        """Take one turn of each run; returns the runs whose response is stored."""
        if self.runner.draining.is_set():
            return []
        keeps = self.runner.recorder.keeps
        conversations = [
            each for each in conversations if not keeps(each.run.run_id, len(each.responses) + 1)
        ]
        if not conversations:
            return []
        questions = [each.question() for each in conversations]
        leases = [self.runner.preparer.new_lease(model, question) for question in questions]
        answers = await self.runner.leases.take(leases)
        begun_at, now = asyncio.get_running_loop().time(), self.runner.clock.now()
        replied: dict[Conversation, Recorded] = {}
        failed: list[CallEnd] = []
        for each, question, lease, answer in zip(
            conversations, questions, leases, answers, strict=True
        ):
            if answer is not LeaseAnswer.GRANTED:
                continue
            each.call_begins(begun_at)
            no_deadline = ThawingTimeout()
            result = await ask(model, question, lease.reserve, self.runner.observer, no_deadline)
            if isinstance(result, ModelCallFailed):
                each.failure = result
                failed.append(CallEnd(lease.key, result.kind in MAY_BE_BILLED))
            else:
                response = each.response(question, result, model, now)
                replied[each] = Recorded(response, lease)
                self.runner.troubles.replied(each.run)
        try:
            if failed:
                await self.runner.leases.end_calls(failed)
            if replied:
                stored = await self.runner.recorder.record(list(replied.values()))
                for each, response in zip(replied, stored, strict=True):
                    each.answered(response)
        finally:
            for lease in leases:
                self.runner.leases.held.discard(lease.key)
        return list(replied)
