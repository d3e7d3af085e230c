"""One run, from its first question to its last stored response: the path of a call, top to bottom.

The runner calls the model for a turn until it replies or retries are useless. Each call gets a
permit from its model's limiter and a lease that reserves its maximal cost. The store records the
reply or failure, in the transaction that settles the lease, before it is used further.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog

from socratic_bench.concurrency.cancellation import finish_despite_cancel
from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.domain.call_cost import most_a_call_costs, tokens_at_most
from socratic_bench.domain.response import Response
from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable, SocraticBenchError
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import Question, Reply
from socratic_bench.ports.stores.leases import CallEnd, Lease, LeaseAnswer, LeaseKey
from socratic_bench.ports.stores.responses import Responses
from socratic_runner.clients import Tutor
from socratic_runner.conversations.asking import ask
from socratic_runner.conversations.budgets import Budgets
from socratic_runner.conversations.call_observing import CallObserver
from socratic_runner.conversations.conversation import (
    Conversation,
    Ending,
    NoRoomYet,
    OutOfBudget,
    Stopped,
    TurnFailed,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.conversations.failure_classes import MAY_BE_BILLED
from socratic_runner.conversations.leases import CANCEL_PATIENCE, LeaseBook, Recorded
from socratic_runner.limits.retries import Retries
from socratic_runner.limits.ticket import LimiterClosed, Permit, Ticket
from socratic_runner.troubles import Troubles

log = structlog.get_logger(__name__)

LEASE_ID_BYTES: Final = 8
"""Random bytes in the id of a lease: ids are compared within one turn only."""

BUDGET_PAUSE: Final = 0.5
"""Seconds before a call that exceeded the budget tries again."""

HELD_PAUSE: Final = 2.0
"""Seconds between two looks at a turn that another runner holds."""

HELD_LOOKS: Final = 9
"""After so many looks, the store knows whether the other runner has died."""

NotCalled = (
    TurnHeldElsewhere | TurnPutOff | OutOfBudget | Stopped | NoRoomYet | ModelCallFailed | Response
)
"""The reason why no call was made: a response may be stored already."""


class PreparedCall(NamedTuple):
    """A lease and a permit: a call needs both."""

    lease: Lease
    permit: Permit


@dataclass(frozen=True, slots=True)
class ConversationRunner:
    """Carries out runs, one conversation at a time each."""

    leases: LeaseBook
    stored: Responses

    budgets: Budgets
    clock: Clock
    new_retries: Callable[[], Retries]
    """How often, and when, the runner retries the calls for one turn."""

    lease_margin: float
    """Seconds that a lease lasts longer than the deadline of its call."""

    draining: asyncio.Event
    """Once set, calls in flight finish and no further call begins."""

    observer: CallObserver
    troubles: Troubles = field(default_factory=Troubles)
    """Hears of every failed attempt, and of replies."""

    async def run(
        self, tutor: Tutor, conversation: Conversation, on_turn: Callable[[], None]
    ) -> None:
        """Take turn after turn until the run is done or something ends it.

        Calls `on_turn` when the response of a turn is stored.
        """
        while conversation.open:
            answer = await self._answer(tutor, conversation, conversation.question())
            if isinstance(answer, Response):
                conversation.answered(answer)
                on_turn()
            else:
                conversation.ended_by = answer

    async def _answer(
        self, tutor: Tutor, conversation: Conversation, question: Question
    ) -> Response | Ending:
        """Return the stored response of a turn; repeat failed calls while that can help."""
        retries = self.new_retries()
        looks = 0
        result: Response | NotCalled | None = conversation.take_failure()
        called = 0
        while True:
            result = result or await self._try(tutor, conversation, question)
            match result:
                case Response():
                    return result
                case ModelCallFailed():
                    conversation.last_failure = result
                    delay = self._next_delay(tutor, conversation, retries, result)
                    if conversation.attempts > called:  # a call was made, and not refused here
                        called = conversation.attempts
                        self.troubles.failed(
                            question.run, result, *retries.counted(result), next_in_seconds=delay
                        )
                    if delay is None:
                        return TurnFailed(question.turn, result, conversation.attempts)
                # D-073: calls in flight may cost less than they reserved.
                case NoRoomYet():
                    delay = BUDGET_PAUSE
                # D-059: a look in hand costs a query, a look by redelivery costs a message.
                case TurnHeldElsewhere() if looks < HELD_LOOKS and not self.draining.is_set():
                    looks, delay = looks + 1, HELD_PAUSE
                case _:
                    return result
            # Without a ticket: a call that waits here keeps no other from being made.
            await self._wait(delay)
            result = None

    async def _try(
        self, tutor: Tutor, conversation: Conversation, question: Question
    ) -> Response | NotCalled:
        """One call for a turn, from the limiter's waiting line to the stored response."""
        if refusal := tutor.refusal:
            return refusal
        tokens = tokens_at_most(question.texts, question.parameters.max_tokens)
        try:
            async with tutor.limiter.ticket(tokens) as ticket:
                prepared = await self._prepare(ticket, tutor, conversation, question)
                if not isinstance(prepared, PreparedCall):
                    return prepared
                conversation.call_begins(_now())
                with tutor.breaker.admitted():
                    result = await ask(tutor, question, prepared.lease.reserve, self.observer)
                    _learn(tutor, prepared.permit, result)
                    if isinstance(result, Reply):
                        self.troubles.replied(question.run)
        except LimiterClosed as closed:
            return TurnPutOff(str(closed))
        return await self._settle(tutor, conversation, question, prepared.lease, result)

    async def _prepare(
        self, ticket: Ticket, tutor: Tutor, conversation: Conversation, question: Question
    ) -> PreparedCall | NotCalled:
        """Take a lease when the permit is near, and wait for the permit."""
        if not ticket.is_near and not await _in_time(ticket.near(), tutor, conversation):
            return _run_is_late(tutor, conversation)
        while True:
            if refusal := tutor.refusal:
                return refusal
            # D-069: lease before permit, so that a quick model does not wait for the store.
            lease = await self._take(tutor, question)
            if not isinstance(lease, Lease):
                return lease
            try:
                prepared = await self._acquire_permit(ticket, lease, _now(), tutor, conversation)
            except BaseException:
                await self._give_back(lease.key)
                raise
            if isinstance(prepared, PreparedCall):
                return prepared
            await self._give_back(lease.key)
            if prepared is not None:
                return prepared
            if not await _in_time(ticket.permit(), tutor, conversation):
                return _run_is_late(tutor, conversation)

    async def _acquire_permit(
        self,
        ticket: Ticket,
        lease: Lease,
        taken_at: float,
        tutor: Tutor,
        conversation: Conversation,
    ) -> PreparedCall | NotCalled | None:
        """Wait for the permit while the lease, taken at a time of the loop, is fresh; None
        afterwards.
        """
        left = conversation.time_left(tutor, _now())
        kept = self.lease_margin / 4 - (_now() - taken_at)
        try:
            permit = await ticket.permit(within=kept if left is None else min(kept, left))
        except TimeoutError:
            return None
        if not self.leases.certain or self.leases.stopped_since(taken_at, lease.key):
            return None
        if self.draining.is_set():
            return _put_off()
        left = conversation.time_left(tutor, _now())
        if left is not None and left <= 0:
            return _run_is_late(tutor, conversation)
        return tutor.breaker.admit() or PreparedCall(lease, permit)

    async def _take(self, tutor: Tutor, question: Question) -> Lease | NotCalled:
        """Take a lease for a call; returns the reason if it is refused. A cancellation ends it."""
        if self.draining.is_set():
            return _put_off()
        lease = self.new_lease(tutor, question)
        try:
            [answer] = await self.leases.take([lease])
        except asyncio.CancelledError:
            await self._give_back(lease.key)
            raise
        if answer is LeaseAnswer.GRANTED:
            return lease
        return await self._not_leased(answer, lease)

    def new_lease(self, tutor: Tutor, question: Question) -> Lease:
        """Make the lease of a call, under a new id, for the store to grant."""
        run, price = question.run, tutor.model.price
        reserve = most_a_call_costs(price, question.texts, question.parameters.max_tokens)
        key = LeaseKey(
            run.experiment_id, run.run_id, question.turn, os.urandom(LEASE_ID_BYTES).hex()
        )
        return Lease(key, tutor.deadline + self.lease_margin, reserve)

    async def _not_leased(self, answer: LeaseAnswer, lease: Lease) -> NotCalled:
        """Translate a refused lease into the reason that stops the run."""
        if answer is LeaseAnswer.ANSWERED:
            stored = await self.stored.responses([lease.key.run_id])
            for response in stored.get(lease.key.run_id, ()):
                if response.turn == lease.key.turn:
                    return response
            return TurnHeldElsewhere("this version cannot read the stored response of this turn")
        if answer is LeaseAnswer.STOPPED:
            # The store may hold this lease if its answer to an earlier claim got lost.
            await self._give_back(lease.key)
            return Stopped()
        if answer is LeaseAnswer.OVER_BUDGET:
            if await self.budgets.room_may_come(lease.key.experiment_id, lease.reserve):
                return NoRoomYet()
            return OutOfBudget()
        return TurnHeldElsewhere("another runner is asking for this turn")

    async def _settle(
        self,
        tutor: Tutor,
        conversation: Conversation,
        question: Question,
        lease: Lease,
        result: Reply | ModelCallFailed,
    ) -> Response | ModelCallFailed:
        """Store the outcome of a call, and end its lease."""
        if isinstance(result, ModelCallFailed):
            # D-072: a call that may have been billed keeps its reservation as spent.
            await self.leases.end_calls([CallEnd(lease.key, result.kind in MAY_BE_BILLED)])
            return result
        response = conversation.response(question, result, tutor, self.clock.now())
        [stored] = await self.leases.record([Recorded(response, lease)])
        return stored

    async def _give_back(self, lease: LeaseKey) -> None:
        """Give back a lease under which no call was made.

        A cancellation waits for this: the process may lease the same turn again right away.
        """
        try:
            await finish_despite_cancel(self.leases.give_back([lease]), patience=CANCEL_PATIENCE)
        except SocraticBenchError as error:
            # The lease ends with this process; its reservation stays committed.
            log.warning("lease not given back", run_id=lease.run_id, reason=str(error))

    def _next_delay(
        self, tutor: Tutor, conversation: Conversation, retries: Retries, failure: ModelCallFailed
    ) -> float | None:
        """Seconds until another try; None if a try is useless or past the run's deadline."""
        delay = retries.next_delay(failure)
        if delay is None:
            return None
        delay = max(delay, tutor.limiter.paused_for)
        left = conversation.time_left(tutor, _now())
        return None if left is not None and delay > left else delay

    async def _wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until the runner drains."""
        await wait_at_most(seconds, self.draining)


def _put_off() -> TurnPutOff:
    return TurnPutOff("the runner is draining")


async def _in_time(waiting: Awaitable[object], tutor: Tutor, conversation: Conversation) -> bool:
    """Whether `waiting` came to an end before the run's deadline."""
    try:
        async with asyncio.timeout(conversation.time_left(tutor, _now())):
            await waiting
    except TimeoutError:
        return False
    return True


def _learn(tutor: Tutor, permit: Permit, result: Reply | ModelCallFailed) -> None:
    """Report the outcome of a call to the limiter and the breaker."""
    if isinstance(result, Reply):
        permit.replied(result)
        tutor.breaker.replied()
        return
    wait = result.retry_after
    if isinstance(result, ModelUnusable):
        permit.failed(result)
        tutor.breaker.trip(result)
    elif wait is not None and wait > tutor.model.limits.run_timeout_seconds:
        # D-067: no run can wait for that long, so no call should wait for a permit.
        permit.failed(result)
        tutor.breaker.trip(result, wait)
        tutor.limiter.look_again()
    else:
        permit.failed(result)
        tutor.breaker.failed(result)


def _run_is_late(tutor: Tutor, conversation: Conversation) -> ModelCallFailed:
    """The failure of a run that waits no longer: why its last call failed, if it did."""
    longest, last = tutor.model.limits.run_timeout_seconds, conversation.last_failure
    message = f"the run's deadline of {longest:g} s passed before another call could be made"
    if last is None:
        return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=False)
    return ModelCallFailed(last.kind, f"{message}; the last call: {last}", retryable=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
