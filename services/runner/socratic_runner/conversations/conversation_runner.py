"""One run, from its first question to its last stored response: the path of a call, top to bottom.

The runner calls the model for a turn until it replies or retries are useless. Each call gets a
permit from its model's limiter and a lease that reserves its maximal cost. The store records the
reply or failure, in the transaction that settles the lease, before it is used further.

Calls to the reference tutors take no time, so the store is the only cost. The conversation runner
handles every case but a plain reply: a turn that another runner holds or whose reply is on its way
to the store, an exhausted budget, a failed call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from structlog.contextvars import bind_contextvars

from socratic_bench.concurrency.deadlines import ThawingTimeout, wait_at_most
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.money import tokens_at_most
from socratic_bench.domain.response import Response
from socratic_bench.errors import (
    FailureKind,
    FaultScope,
    ModelCallFailed,
    ModelUnusable,
    StoreRefused,
)
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import Question, Reply
from socratic_bench.ports.stores.leases import CallEnd, Lease
from socratic_runner.conversations.asking import ask, log_fields
from socratic_runner.conversations.batching import Answered, Batching
from socratic_runner.conversations.call_outcomes import (
    BILLED_IN_BATCH,
    MAY_BE_BILLED,
    UNUSABLE,
    CallObserver,
    Retries,
)
from socratic_runner.conversations.call_preparation import CallPreparer, NotCalled, PreparedCall
from socratic_runner.conversations.conversation import (
    Conversation,
    Ending,
    NoRoomYet,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.leases.book import LeaseBook
from socratic_runner.leases.recorder import Recorded, Recorder
from socratic_runner.limits.ticket import LimiterClosed, Permit
from socratic_runner.model_pool import CalledModel
from socratic_runner.troubles import Troubles

BUDGET_PAUSE: Final = 0.5
"""Seconds before a call that exceeded the budget tries again."""

HELD_PAUSE: Final = 2.0
"""Seconds between two looks at a turn that another runner holds."""

HELD_LOOKS: Final = 9
"""After so many looks, the store knows whether the other runner has died."""


@dataclass(frozen=True, slots=True)
class ConversationRunner:
    """Carries out runs, one conversation at a time each."""

    preparer: CallPreparer
    leases: LeaseBook
    recorder: Recorder
    clock: Clock
    new_retries: Callable[[], Retries]
    """How often, and when, the runner retries the calls for one turn."""

    draining: asyncio.Event
    """Once set, calls in flight finish and no further call begins."""

    observer: CallObserver
    troubles: Troubles
    """Hears of every failed attempt, and of replies."""

    batching: Batching

    async def run(
        self, model: CalledModel, conversation: Conversation, on_turn: Callable[[], None]
    ) -> None:
        """Take turn after turn until the run is done or something ends it.

        Calls `on_turn` when the response of a turn is stored.
        """
        while conversation.open:
            await self.take_turn(model, conversation, on_turn)

    async def take_turn(
        self, model: CalledModel, conversation: Conversation, on_turn: Callable[[], None]
    ) -> None:
        """Take the next turn, or note what ended the run, as `run` does."""
        answer = await self._answer(model, conversation)
        if isinstance(answer, Response):
            conversation.answered(answer)
            on_turn()
        else:
            conversation.ended_by = answer

    async def _answer(self, model: CalledModel, conversation: Conversation) -> Response | Ending:
        """Return the stored response of a turn; repeat failed calls while that can help."""
        retries = self.new_retries()
        looks = 0
        result: Response | NotCalled | None = conversation.take_failure()
        called = 0
        while True:
            question = conversation.question()
            result = result or await self._from_batch(model, conversation, question)
            result = result or await self._try(model, conversation, question)
            match result:
                case Response():
                    return result
                case ModelCallFailed():
                    conversation.last_failure = result
                    delay = self._next_delay(model, conversation, retries, result)
                    held = model.breaker.held_for if result.scope is FaultScope.KEY else None
                    if conversation.attempts > called:  # a call was made, and not refused here
                        called = conversation.attempts
                        self.troubles.failed(
                            question.run,
                            result,
                            *retries.counted(result),
                            next_in_seconds=delay if held is None else held,
                            waits_for_key=held is not None,
                        )
                    if held is not None:
                        return TurnPutOff(f"its key may be renewed: {result}", held)
                    if delay is None:
                        return TurnFailed(question.turn, result, conversation.attempts)
                # Calls in flight may cost less than they reserved.
                case NoRoomYet():
                    delay = BUDGET_PAUSE
                # A look in hand costs a query, a look by redelivery costs a message.
                case TurnHeldElsewhere() if looks < HELD_LOOKS and not self.draining.is_set():
                    looks, delay = looks + 1, HELD_PAUSE
                case _:
                    return result
            # Without a ticket: a call that waits here keeps no other from being made.
            await self._wait(delay)
            result = None

    async def _from_batch(
        self, model: CalledModel, conversation: Conversation, question: Question
    ) -> Response | NotCalled | None:
        """Return the response or failure of a turn in a provider's batch; None: it needs a call.

        A call that failed in its batch is repeated outside of batches, so that its run ends.
        """
        if model.batches is None or conversation.attempts:
            return None
        answered = await self.batching.answer(model, question)
        if not isinstance(answered, Answered):
            return answered
        conversation.call_begins(_now())
        return await self._settle(model.in_batch, conversation, question, *answered, in_batch=True)

    async def _try(
        self, model: CalledModel, conversation: Conversation, question: Question
    ) -> Response | NotCalled:
        """One call for a turn, from the limiter's waiting line to the stored response."""
        # D-410: the store grants its owner another lease, and a second call would be paid for.
        if kept := await self.recorder.kept(question.run.run_id, question.turn):
            return kept
        if refusal := model.refusal or self.preparer.window.refusal(model):
            return refusal
        tokens = tokens_at_most(question.texts, question.parameters.max_tokens)
        try:
            priority = conversation.experiment.manifest.priority
            with model.limiter.ticket(tokens, priority) as ticket:
                prepared = await self.preparer.prepare(ticket, model, conversation, question)
                if not isinstance(prepared, PreparedCall):
                    return prepared
                conversation.call_begins(_now())
                # The context ends with the run's task.
                bind_contextvars(**log_fields(question))
                with self.leases.held.calling(prepared.lease.key), model.breaker.admitted():
                    deadline = ThawingTimeout(_now() + model.deadline)
                    reserve = prepared.lease.reserve
                    result = await ask(model, question, reserve, self.observer, deadline)
                    _learn(model, prepared.permit, question, result)
        except LimiterClosed as closed:
            return TurnPutOff(str(closed))
        return await self._settle(model, conversation, question, prepared.lease, result)

    async def _settle(
        self,
        model: CalledModel,
        conversation: Conversation,
        question: Question,
        lease: Lease,
        result: Reply | ModelCallFailed,
        *,
        in_batch: bool = False,
    ) -> Response | ModelCallFailed:
        """Store the outcome of a call, and end its lease."""
        if isinstance(result, ModelCallFailed):
            # A call that may have been billed keeps its reservation as spent.
            billed = BILLED_IN_BATCH if in_batch else MAY_BE_BILLED
            await self.leases.end_calls([CallEnd(lease.key, result.kind in billed)])
            return result
        self.troubles.replied(question.run)
        response = conversation.response(question, result, model, self.clock.now())
        self.troubles.answered(response)
        # D-410: a cancellation ends the wait, and not the storing of what was paid for.
        storing = self.recorder.begin([Recorded(response, lease, in_batch)])
        storing.add_done_callback(lambda _: self.leases.held.discard(lease.key))
        try:
            [stored] = await asyncio.shield(storing)
        except StoreRefused as error:
            # A run without a stored end would be requested, and paid for, again and again.
            await self.leases.end_calls([CallEnd(lease.key, billed=True)])
            return ModelCallFailed(FailureKind.UNSTORABLE, str(error), retryable=False)
        return stored

    def _next_delay(
        self,
        model: CalledModel,
        conversation: Conversation,
        retries: Retries,
        failure: ModelCallFailed,
    ) -> float | None:
        """Seconds until another try; None if a try is useless or past the run's deadline."""
        delay = retries.next_delay(failure)
        if delay is None:
            return None
        delay = max(delay, model.limiter.paused_for)
        left = conversation.time_left(model, _now())
        return None if left is not None and delay > left else delay

    async def _wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until the runner drains."""
        await wait_at_most(seconds, self.draining)


def nothing() -> None:
    """Publish nothing: only a tutor's response is published."""


def _learn(
    model: CalledModel, permit: Permit, question: Question, result: Reply | ModelCallFailed
) -> None:
    """Report the outcome of a call to the limiter and the breaker."""
    if isinstance(result, Reply):
        permit.replied(result)
        model.breaker.replied(question.turn)
        return
    wait, patience = result.retry_after, model.entry.limits.run_timeout_seconds
    if isinstance(result, ModelUnusable):
        permit.failed(result)
        model.breaker.trip(result, patience=patience)
    elif result.scope is FaultScope.CONVERSATION and result.kind in UNUSABLE:
        permit.failed(result)
        model.breaker.refused(result, question.run.scenario_id, question.turn)
    elif wait is not None and wait > patience:
        # No run can wait for that long, so no call should wait for a permit.
        permit.failed(result)
        model.breaker.trip(result, wait)
        model.limiter.look_again()
    else:
        permit.failed(result)
        model.breaker.failed(result)


def _now() -> float:
    return asyncio.get_running_loop().time()


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
