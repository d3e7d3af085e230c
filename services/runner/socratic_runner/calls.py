"""Making calls: through the model's gate, under a lease, within the budget and the deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final, NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from socratic_bench.consuming.cancellation import to_the_end
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.call_cost import most_a_call_costs, tokens_at_most
from socratic_bench.errors import (
    ModelCallFailed,
    ModelUnusable,
    SocraticBenchError,
    StoreUnavailable,
)
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import FailureKind, Question, Reply
from socratic_bench.ports.store import TurnKey
from socratic_runner.budgets import Budgets
from socratic_runner.clients import Tutor
from socratic_runner.conversation import (
    Conversation,
    NoRoomYet,
    OutOfBudget,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.failure_classes import MAY_BE_BILLED
from socratic_runner.limits.gate import GateClosed, Passage, Place

log = structlog.get_logger(__name__)

PATIENCE: Final = 5.0
"""Seconds that a call which is cancelled waits for the store, to give its lease back."""

NotLeased = TurnHeldElsewhere | TurnPutOff | OutOfBudget | NoRoomYet

Result = Reply | ModelCallFailed | NotLeased
"""What came of one question."""


class Lease(NamedTuple):
    """A request to call a model for one turn, until a time."""

    experiment_id: str
    turn: TurnKey
    reserve: int
    """Nanodollars that the call may cost at most."""

    now: datetime
    until: datetime


class Leased(Enum):
    """What became of a request for a lease."""

    GRANTED = auto()
    HELD = auto()
    OVER_BUDGET = auto()


class Unused(NamedTuple):
    """A reservation whose call failed."""

    experiment_id: str
    turn: TurnKey
    paid: bool
    """Whether the call may have been paid for all the same."""


@dataclass(slots=True)
class _Held:
    """What a call that is being prepared holds, until it is made or given up."""

    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes one call for a question, or says why none was made."""

    lease: Callable[[Sequence[Lease]], Awaitable[Sequence[Leased]]]
    give_back: Callable[[Sequence[Lease]], Awaitable[object]]
    """End leases under which no call was made."""

    release: Callable[[Sequence[Unused]], Awaitable[object]]
    """End the reservations of calls that failed."""

    budgets: Budgets
    clock: Clock
    lease_margin: timedelta
    """How much longer than the deadline of a call its lease lasts."""

    draining: asyncio.Event
    """Once set, no call is begun."""

    async def make(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Result]:
        """One call for each question; several at once only of a tutor that answers at once."""
        if not tutor.client.answers_at_once:
            [(conversation, question)] = questions.items()
            return {conversation: await self._line_up(tutor, conversation, question)}
        results: dict[Conversation, Result] = {}
        for conversation, leased in (await self._take_leases(tutor, questions)).items():
            if isinstance(leased, Lease):
                question = questions[conversation]
                results[conversation] = await self._call(tutor, conversation, question, leased)
            else:
                results[conversation] = leased
        return results

    async def _line_up(
        self, tutor: Tutor, conversation: Conversation, question: Question
    ) -> Result:
        """Wait before the gate, and make a call."""
        if refusal := tutor.breaker.refusal:
            return refusal
        tokens = tokens_at_most(_texts(question), question.parameters.max_tokens)
        try:
            async with tutor.gate.place(tokens) as place:
                return await self._make_from(place, tutor, conversation, question)
        except GateClosed as closed:
            return TurnPutOff(str(closed))

    async def _make_from(
        self, place: Place, tutor: Tutor, conversation: Conversation, question: Question
    ) -> Result:
        """Make a call from a place in the line."""
        if not await _in_time(place.near(), tutor, conversation):
            return _run_is_late(tutor)
        held = _Held()
        try:
            return await self._make_under(held, place, tutor, conversation, question)
        finally:
            await self._let_go(held)

    async def _make_under(
        self,
        held: _Held,
        place: Place,
        tutor: Tutor,
        conversation: Conversation,
        question: Question,
    ) -> Result:
        """Make a call under a lease that is taken a little before; `held` has it until then.

        A lease has to outlast its call, so one that is kept waiting for long is given back.
        """
        while True:
            if refusal := tutor.breaker.refusal:
                return refusal
            taking = self._take(held, tutor, conversation, question)
            lease = await to_the_end(taking, patience=PATIENCE)
            if not isinstance(lease, Lease):
                return lease
            left = conversation.time_left(tutor, _now())
            kept = (self.lease_margin / 4 - (self.clock.now() - lease.now)).total_seconds()
            try:
                passage = await place.passage(within=kept if left is None else min(kept, left))
            except TimeoutError:
                await self._let_go(held)
            else:
                if not_made := self._refusal(tutor, conversation):
                    return not_made
                held.lease = None
                return await self._pass(passage, tutor, conversation, question, lease)
            if not await _in_time(place.passage(), tutor, conversation):
                return _run_is_late(tutor)

    def _refusal(self, tutor: Tutor, conversation: Conversation) -> Result | None:
        """Why a call whose turn has come is not made after all. None: the breaker admitted it."""
        if self.draining.is_set():
            return _put_off()
        left = conversation.time_left(tutor, _now())
        if left is not None and left <= 0:
            return _run_is_late(tutor)
        return tutor.breaker.admit()

    async def _take(
        self, held: _Held, tutor: Tutor, conversation: Conversation, question: Question
    ) -> Lease | NotLeased:
        leased = (await self._take_leases(tutor, {conversation: question}))[conversation]
        if isinstance(leased, Lease):
            held.lease = leased
        return leased

    async def _let_go(self, held: _Held) -> None:
        """Give back a lease under which no call was made."""
        lease, held.lease = held.lease, None
        if lease is None:
            return
        try:
            # To the end: the same turn may be leased again right away.
            await to_the_end(self._give_back(lease), patience=PATIENCE)
        except SocraticBenchError as error:
            # It runs out by itself; what it reserved stays committed, and it counts as a call.
            log.warning("lease not given back", run_id=lease.turn.run_id, reason=str(error))

    async def _give_back(self, lease: Lease) -> None:
        """Give a lease back, as soon as the store answers; one that drains tries it once."""
        delays, attempt = RetryPolicy(), 0
        while True:
            try:
                await self.give_back([lease])
            except StoreUnavailable:
                if self.draining.is_set():
                    raise
            else:
                return
            attempt += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(delays.delay(attempt)):
                    await self.draining.wait()

    async def _pass(
        self,
        passage: Passage,
        tutor: Tutor,
        conversation: Conversation,
        question: Question,
        lease: Lease,
    ) -> Result:
        """Make a call that was admitted, and tell the gate and the breaker what came of it."""
        try:
            result = await self._call(tutor, conversation, question, lease)
        except BaseException:
            tutor.breaker.abandoned()
            raise
        if isinstance(result, Reply):
            passage.replied(result)
            tutor.breaker.replied()
        else:
            _learn(tutor, passage, result)
        return result

    async def _take_leases(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Lease | NotLeased]:
        if self.draining.is_set():
            return dict.fromkeys(questions, _put_off())
        now = self.clock.now()
        until = now + timedelta(seconds=tutor.deadline) + self.lease_margin
        leases = [_lease(tutor, question, now, until) for question in questions.values()]
        taken: dict[Conversation, Lease | NotLeased] = {}
        for each, lease, leased in zip(questions, leases, await self.lease(leases), strict=True):
            if leased is Leased.GRANTED:
                taken[each] = lease
            elif leased is Leased.HELD:
                taken[each] = TurnHeldElsewhere("another runner is asking for this turn")
            elif await self.budgets.room_may_come(lease.experiment_id, lease.reserve):
                taken[each] = NoRoomYet("calls in flight have reserved the rest of the budget")
            else:
                taken[each] = OutOfBudget("the budget does not suffice for another call")
        return taken

    async def _call(
        self, tutor: Tutor, conversation: Conversation, question: Question, lease: Lease
    ) -> Reply | ModelCallFailed:
        conversation.call_begins(_now())
        result = await _reply(tutor, question)
        if lease.reserve and isinstance(result, ModelCallFailed):
            paid = result.kind in MAY_BE_BILLED
            await self.release([Unused(lease.experiment_id, lease.turn, paid)])
        return result


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


def _lease(tutor: Tutor, question: Question, now: datetime, until: datetime) -> Lease:
    run, price = question.run, tutor.model.price
    reserve = 0
    if price is not None:
        reserve = most_a_call_costs(price, _texts(question), question.parameters.max_tokens)
    return Lease(run.experiment_id, TurnKey(run.run_id, question.turn), reserve, now, until)


def _texts(question: Question) -> list[str]:
    """Everything that is sent for a question."""
    texts = [question.system_prompt, question.student_message]
    for turn in question.earlier_turns:
        texts += [turn.student, turn.tutor]
    return texts


def _learn(tutor: Tutor, passage: Passage, failure: ModelCallFailed) -> None:
    """Tell the gate and the breaker of a failed call."""
    wait = failure.retry_after
    if isinstance(failure, ModelUnusable):
        passage.failed(failure)
        tutor.breaker.trip(failure)
    elif wait is not None and wait > tutor.model.limits.run_timeout_seconds:
        # No run can wait for that long, so nobody is to wait at the gate.
        passage.failed(ModelCallFailed(failure.kind, str(failure), retryable=False))
        tutor.breaker.trip(failure, wait)
    else:
        passage.failed(failure)
        tutor.breaker.failed(failure)


def _run_is_late(tutor: Tutor) -> ModelCallFailed:
    longest = tutor.model.limits.run_timeout_seconds
    message = f"the run's deadline of {longest:g} s passed before another call could be made"
    return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=False)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _reply(tutor: Tutor, question: Question) -> Reply | ModelCallFailed:
    """What came of one call."""
    if tutor.client.answers_at_once:
        return await _ask(tutor, question)
    try:
        with bound_contextvars(**_about(question)):
            async with asyncio.timeout(tutor.deadline):
                return await _ask(tutor, question)
    except TimeoutError:
        message = f"no answer within {tutor.deadline:g} s"
        return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True)


def _about(question: Question) -> dict[str, str | int]:
    """What a log line about this call is found by."""
    run = question.run
    return {
        "run_id": run.run_id,
        "correlation_id": run.experiment_id,
        "turn": question.turn,
    }


async def _ask(tutor: Tutor, question: Question) -> Reply | ModelCallFailed:
    try:
        reply = await tutor.client.ask(question)
        for text in (reply.text, reply.stop_reason, reply.model_version):
            (text or "").encode()
    except ModelCallFailed as failure:
        return failure
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ModelCallFailed(FailureKind.UNKNOWN, "its client gave the call up", retryable=True)
    except UnicodeEncodeError as error:
        message = f"the reply is no valid Unicode text: {error.reason}"
        return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)
    except Exception as error:
        log.exception("model client failed", model=question.run.model_id, **_about(question))
        message = f"{type(error).__name__}: {error}"
        return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)
    return reply
