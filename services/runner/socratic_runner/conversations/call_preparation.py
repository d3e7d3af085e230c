"""What a call needs before it begins: time, a budget, a lease of its turn, and a permit."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

import structlog

from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.money import most_a_call_costs
from socratic_bench.domain.response import Response
from socratic_bench.errors import FailureKind, ModelCallFailed, SocraticBenchError
from socratic_bench.ports.models import Question
from socratic_bench.ports.stores.leases import Lease, LeaseKey, Leases, Spending
from socratic_bench.ports.stores.responses import Responses
from socratic_runner.conversations.conversation import (
    Conversation,
    NoRoomYet,
    OutOfBudget,
    Stopped,
    TurnHeldElsewhere,
    TurnPutOff,
)
from socratic_runner.last_uses import MOST_EXPERIMENTS, LastUses
from socratic_runner.leases.book import CANCEL_PATIENCE, LeaseBook
from socratic_runner.limits.ticket import Permit, Ticket
from socratic_runner.model_pool import CalledModel

LOOK_SECONDS: Final = 1.0
"""Seconds after which a call that waits for its permit looks whether the wait is still of use."""

STORING_SECONDS: Final = 10.0
"""Seconds after a call in which its reply is stored and published."""


@dataclass(frozen=True, slots=True)
class CallWindow:
    """Whether a call can end while the runner is there to store its reply.

    A process has all the time it wants. A function ends after some minutes, whatever it has in
    hand: a call that was paid for would be lost.
    """

    left: Callable[[], float] = lambda: inf
    """Seconds until the runner ends."""

    whole: float = inf
    """The most seconds that there ever are."""

    longest_pause: float = inf
    """Seconds for which a run may wait in hand while its model is paused: a function is paid for
    its waiting."""

    def refusal(self, model: CalledModel) -> TurnPutOff | ModelCallFailed | None:
        """Return why a call to this model may not begin now; None if it may."""
        if self is ALL_TIME:
            return None
        needed = model.deadline + STORING_SECONDS
        if needed > self.whole:
            return ModelCallFailed(
                FailureKind.TIMEOUT,
                f"a call may take {model.deadline:g} s, and this runner ends after "
                f"{self.whole:g} s: lower the model's limits.timeout_seconds to "
                f"{self.whole - STORING_SECONDS:g}, or run the runner in a container",
                retryable=False,
            )
        if needed > self.left():
            return TurnPutOff("a call might not end in the time that is left")
        paused = model.limiter.paused_for
        if paused > self.longest_pause:
            return TurnPutOff("the model is paused", paused)
        return None


ALL_TIME: Final = CallWindow()
"""The window of a process."""


log = structlog.get_logger(__name__)

FRESH = 0.25
"""Seconds for which one query of the spending serves all callers."""


@dataclass(slots=True)
class _Experiment:
    """The known spending of one experiment."""

    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    spending: Spending | None = None
    seen_at: float = 0.0


class Budgets:
    """Separates calls that may get money later from calls that cannot."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._experiments: defaultdict[str, _Experiment] = defaultdict(_Experiment)
        self._uses = LastUses[str](MOST_EXPERIMENTS)

    async def room_may_come(self, experiment_id: str, reserve: int) -> bool:
        """Return whether a call that may cost `reserve` nanodollars may fit into the budget later.

        Calls in flight return money if they cost less than they reserved. Without calls in flight
        no money returns: the budget is then marked as exhausted.
        """
        if self._uses.look_is_due:
            for idle in self._uses.take_idle():
                self._experiments.pop(idle, None)
        self._uses.note(experiment_id)
        experiment = self._experiments[experiment_id]
        async with experiment.looking:
            # Spending only grows, so a query of a moment ago is as good as a new one.
            now = asyncio.get_running_loop().time()
            spending = experiment.spending
            if spending is None or now - experiment.seen_at > FRESH:
                spending = await self._leases.spending(experiment_id)
                experiment.spending, experiment.seen_at = spending, now
            if spending.budget is None or spending.in_flight:
                return True
            if spending.committed + reserve <= spending.budget:
                return True
            if not spending.exhausted:
                await self._leases.exhaust(experiment_id, reserve)
                experiment.spending = None
                log.info("budget exhausted", correlation_id=experiment_id)
            return False


NotCalled = (
    TurnHeldElsewhere | TurnPutOff | OutOfBudget | Stopped | NoRoomYet | ModelCallFailed | Response
)
"""The reason why no call was made: a response may be stored already."""


class PreparedCall(NamedTuple):
    """A lease and a permit: a call needs both."""

    lease: Lease
    permit: Permit


@dataclass(frozen=True, slots=True)
class CallPreparer:
    """Gets a lease and a permit for one call, or the reason why there are none."""

    leases: LeaseBook
    stored: Responses
    budgets: Budgets
    lease_margin: float
    """Seconds that a lease lasts longer than the deadline of its call."""

    draining: asyncio.Event
    """Once set, no further call begins."""

    window: CallWindow
    """The time in which calls may be in flight."""

    async def prepare(
        self, ticket: Ticket, model: CalledModel, conversation: Conversation, question: Question
    ) -> PreparedCall | NotCalled:
        """Take a lease when the permit is near, and wait for the permit."""
        if not ticket.is_near and not await _in_time(ticket.near(), model, conversation):
            return _run_is_late(model, conversation)
        while True:
            if refusal := model.refusal or self.window.refusal(model):
                return refusal
            # Lease before permit, so that a quick model does not wait for the store.
            lease = await self._take(model, question)
            if not isinstance(lease, Lease):
                return lease
            try:
                prepared = await self._acquire_permit(ticket, lease, _now(), model, conversation)
            except BaseException:
                await self._give_back(lease.key)
                raise
            if isinstance(prepared, PreparedCall):
                return prepared
            await self._give_back(lease.key)
            if prepared is not None:
                return prepared
            if failure := await self._await_permit(ticket, model, conversation):
                return failure

    async def _await_permit(
        self, ticket: Ticket, model: CalledModel, conversation: Conversation
    ) -> NotCalled | None:
        """Wait until the permit is there; returns why the run waits no longer, if it does not.

        A run without a call has no deadline yet, and the pause may be longer than any run waits.
        """
        while True:
            if refusal := model.refusal or self.window.refusal(model):
                return refusal
            left = conversation.time_left(model, _now())
            if left is not None and left <= 0:
                return _run_is_late(model, conversation)
            try:
                await ticket.permit(within=min(LOOK_SECONDS, inf if left is None else left))
            except TimeoutError:
                continue
            return None

    async def _acquire_permit(
        self,
        ticket: Ticket,
        lease: Lease,
        taken_at: float,
        model: CalledModel,
        conversation: Conversation,
    ) -> PreparedCall | NotCalled | None:
        """Wait for the permit while the lease, taken at a time of the loop, is fresh; None
        afterwards.
        """
        left = conversation.time_left(model, _now())
        kept = self.lease_margin / 4 - (_now() - taken_at)
        try:
            permit = await ticket.permit(within=kept if left is None else min(kept, left))
        except TimeoutError:
            return None
        if not self.leases.may_begin(lease, taken_at):
            return None
        if self.draining.is_set():
            return _put_off()
        if put_off := self.window.refusal(model):
            return put_off
        left = conversation.time_left(model, _now())
        if left is not None and left <= 0:
            return _run_is_late(model, conversation)
        return model.breaker.admit() or PreparedCall(lease, permit)

    async def _take(self, model: CalledModel, question: Question) -> Lease | NotCalled:
        """Take a lease for a call; returns the reason if it is refused. A cancellation ends it."""
        if self.draining.is_set():
            return _put_off()
        lease = self.new_lease(model, question)
        try:
            [answer] = await self.leases.take([lease])
        except asyncio.CancelledError:
            await self._give_back(lease.key)
            raise
        if answer is LeaseAnswer.GRANTED:
            return lease
        return await self.not_leased(answer, lease)

    def new_lease(self, model: CalledModel, question: Question) -> Lease:
        """Make the lease of a call, under a new id, for the store to grant."""
        run, price = question.run, model.entry.price
        reserve = most_a_call_costs(price, question.texts, question.parameters.max_tokens)
        key = LeaseKey(
            run.experiment_id,
            run.run_id,
            question.turn,
            self.leases.new_id(),
        )
        return Lease(key, model.deadline + self.lease_margin, reserve)

    async def not_leased(self, answer: LeaseAnswer, lease: Lease) -> NotCalled:
        """Translate a refused lease into the reason that stops the run."""
        if answer in (LeaseAnswer.ANSWERED, LeaseAnswer.STOPPED):
            # The store may hold this lease if its answer to an earlier claim got lost.
            await self._give_back(lease.key)
        if answer is LeaseAnswer.ANSWERED:
            stored = await self.stored.responses([lease.key.run_id])
            for response in stored.get(lease.key.run_id, ()):
                if response.turn == lease.key.turn:
                    return response
            return TurnHeldElsewhere("this version cannot read the stored response of this turn")
        if answer is LeaseAnswer.STOPPED:
            return Stopped()
        if answer is LeaseAnswer.OVER_BUDGET:
            if await self.budgets.room_may_come(lease.key.experiment_id, lease.reserve):
                return NoRoomYet()
            return OutOfBudget()
        return TurnHeldElsewhere("another runner is asking for this turn")

    async def _give_back(self, lease: LeaseKey) -> None:
        """Give back a lease under which no call was made.

        A cancellation waits for this: the process may lease the same turn again right away.
        """
        try:
            await finish_despite_cancel(self.leases.give_back([lease]), patience=CANCEL_PATIENCE)
        except SocraticBenchError as error:
            # The lease ends with this process; its reservation stays committed.
            log.warning("lease not given back", run_id=lease.run_id, reason=str(error))


def _put_off() -> TurnPutOff:
    return TurnPutOff("the runner is draining")


async def _in_time(
    waiting: Awaitable[object], model: CalledModel, conversation: Conversation
) -> bool:
    """Whether `waiting` came to an end before the run's deadline."""
    left = conversation.time_left(model, _now())
    if left is None:
        await waiting
        return True
    try:
        async with asyncio.timeout(left):
            await waiting
    except TimeoutError:
        return False
    return True


def _run_is_late(model: CalledModel, conversation: Conversation) -> ModelCallFailed:
    """The failure of a run that waits no longer: why its last call failed, if it did."""
    longest, last = model.entry.limits.run_timeout_seconds, conversation.last_failure
    message = f"the run's deadline of {longest:g} s passed before another call could be made"
    if last is None:
        return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=False)
    return ModelCallFailed(last.kind, f"{message}; the last call: {last}", retryable=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
