"""Making calls: through the model's gate, under a lease, within the budget and the deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple

import structlog
from structlog.contextvars import bound_contextvars

from socratic_bench.domain.call_cost import most_a_call_costs, tokens_at_most
from socratic_bench.errors import ModelCallFailed, ModelUnusable
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
from socratic_runner.limits.gate import GateClosed, Passage

log = structlog.get_logger(__name__)

Result = Reply | ModelCallFailed | TurnHeldElsewhere | TurnPutOff | OutOfBudget | NoRoomYet
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


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes one call for a question, or says why none was made."""

    lease: Callable[[Sequence[Lease]], Awaitable[Sequence[Leased]]]
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
        if tutor.client.answers_at_once:
            return await self._make_leased(tutor, questions)
        [(conversation, question)] = questions.items()
        if refusal := tutor.breaker.refusal:
            return {conversation: refusal}
        tokens = tokens_at_most(_texts(question), question.parameters.max_tokens)
        left = conversation.time_left(tutor, _now())
        async with AsyncExitStack() as passing:
            try:
                async with asyncio.timeout(left):
                    passage = await passing.enter_async_context(tutor.gate.passage(tokens))
            except GateClosed as closed:
                return {conversation: TurnPutOff(str(closed))}
            except TimeoutError:
                return {conversation: _run_is_late(tutor)}
            return {conversation: await self._pass(tutor, passage, conversation, question)}

    async def _pass(
        self, tutor: Tutor, passage: Passage, conversation: Conversation, question: Question
    ) -> Result:
        """Make a call whose turn it is, and tell the gate and the breaker what came of it."""
        if refusal := tutor.breaker.admit():
            return refusal
        try:
            result = (await self._make_leased(tutor, {conversation: question}))[conversation]
        except BaseException:
            tutor.breaker.abandoned()
            raise
        if isinstance(result, Reply):
            passage.replied(result)
            tutor.breaker.replied()
        elif isinstance(result, ModelCallFailed):
            _learn(tutor, passage, result)
        else:
            tutor.breaker.abandoned()
        return result

    async def _make_leased(
        self, tutor: Tutor, questions: dict[Conversation, Question]
    ) -> dict[Conversation, Result]:
        if self.draining.is_set():
            return dict.fromkeys(questions, TurnPutOff("the runner is draining"))
        now = self.clock.now()
        until = now + timedelta(seconds=tutor.deadline) + self.lease_margin
        leases = [_lease(tutor, question, now, until) for question in questions.values()]
        results: dict[Conversation, Result] = {}
        for (each, question), lease, leased in zip(
            questions.items(), leases, await self.lease(leases), strict=True
        ):
            if leased is Leased.GRANTED:
                each.call_begins(_now())
                results[each] = await self._call(tutor, question, lease)
            elif leased is Leased.HELD:
                results[each] = TurnHeldElsewhere("another runner is asking for this turn")
            elif await self.budgets.room_may_come(lease.experiment_id, lease.reserve):
                results[each] = NoRoomYet("calls in flight have reserved the rest of the budget")
            else:
                results[each] = OutOfBudget("the budget does not suffice for another call")
        return results

    async def _call(self, tutor: Tutor, question: Question, lease: Lease) -> Result:
        result = await _reply(tutor, question)
        if lease.reserve and isinstance(result, ModelCallFailed):
            paid = result.kind in MAY_BE_BILLED
            await self.release([Unused(lease.experiment_id, lease.turn, paid)])
        return result


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
