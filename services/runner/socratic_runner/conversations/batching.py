"""The turns that wait in a provider's batch: handed over, found again, and answered.

The leases of a batch are all that the store knows of it. They are taken before the provider gets
the batch, so every runner, at any time, finds by them which batch to ask for which turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.provider_batch import LEASE_SECONDS, ProviderBatch
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import Question, Reply
from socratic_bench.ports.stores.leases import Lease, LeaseKey, Leases, WaitingTurn
from socratic_bench.ports.stores.responses import TurnKey
from socratic_runner.conversations.asking import checked, note_outcome
from socratic_runner.conversations.call_outcomes import UNUSABLE, CallObserver
from socratic_runner.conversations.call_preparation import CallPreparer, NotCalled
from socratic_runner.conversations.conversation import NoRoomYet, TurnPutOff
from socratic_runner.model_pool import CalledModel
from socratic_runner.models.http.batches import LOST_AFTER, HttpBatches
from socratic_runner.troubles import Troubles

GATHER_SECONDS: Final = 1.0
"""Seconds in which the turns of a model gather for one batch."""

SUBMIT_SECONDS: Final = 300.0
"""The most seconds that handing a batch over takes: far less than until it counts as lost."""

ANSWER_SECONDS: Final = 120.0
"""Seconds that a provider has to answer a question about a batch, or to send its results."""

VIEW_SECONDS: Final = 20.0
"""Seconds for which one reading of an experiment's waiting turns serves all its runs."""

SHORTEST_LOOK: Final = 30.0
LONGEST_LOOK: Final = 300.0
"""Bounds of the seconds between two looks at a batch: a tenth of its age."""

_REFUSED: Final = UNUSABLE | {
    FailureKind.RATE_LIMITED,
    FailureKind.CONTEXT_TOO_LONG,
    FailureKind.REFUSED,
}
"""After these failures the provider certainly has no batch."""

log = structlog.get_logger(__name__)


class Answered(NamedTuple):
    """The outcome of a call in a batch, and the lease to settle with it."""

    lease: Lease
    result: Reply | ModelCallFailed


@dataclass(slots=True)
class _View:
    """The waiting turns of an experiment, as read at a time of the loop."""

    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    turns: dict[TurnKey, WaitingTurn] = field(default_factory=dict)
    read_at: float = -inf


@dataclass(slots=True)
class _Known:
    """A batch with waiting turns, as this runner knows it."""

    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    look_at: float = -inf
    """When to look at it again, by the loop's clock."""

    is_lost: bool = False
    """Whether the provider said so late that it has no such batch."""

    refusal: ModelCallFailed | None = None
    """Why the provider refused it as a whole."""

    results: Mapping[str, bytes] | None = None
    """None: it has not ended."""


class _Gathered(NamedTuple):
    question: Question
    verdict: asyncio.Future[NotCalled | None]


class Batching:
    """Hands turns over to providers' batches, and gives runs their answers."""

    def __init__(
        self,
        store: Leases,
        preparer: CallPreparer,
        clock: Clock,
        observer: CallObserver,
        troubles: Troubles,
    ) -> None:
        self._store = store
        self._preparer = preparer
        self._clock = clock
        self._observer = observer
        self._troubles = troubles
        self._views: dict[str, _View] = {}
        self._known: dict[str, _Known] = {}
        self._gathering: dict[CalledModel, list[_Gathered]] = {}
        self._submitting: set[asyncio.Task[None]] = set()
        self._refused: set[tuple[str, str]] = set()
        """The experiments and models whose provider takes no batches."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Hand over what gathers while the context is open."""
        try:
            yield
        finally:
            for task in (tasks := list(self._submitting)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def answer(self, model: CalledModel, question: Question) -> Answered | NotCalled | None:
        """Return the answer to a turn from its batch, or why it has none yet.

        A turn in no batch goes into the next one. None: the provider takes no batches, and the turn
        needs a call.
        """
        run = question.run
        view = await self._view(run.experiment_id)
        waiting = view.turns.get(TurnKey(run.run_id, question.turn))
        if waiting is not None:
            outcome = await self._outcome(model, question, waiting)
            if isinstance(outcome, TurnPutOff):
                return outcome
            view.turns.pop(TurnKey(run.run_id, question.turn), None)
            if outcome is not None:
                return outcome
        if (run.experiment_id, run.model_id) in self._refused:
            return None
        unwanted = model.refusal or self._preparer.window.refusal(model)
        return unwanted or await self._gathered(model, question)

    async def _outcome(
        self, model: CalledModel, question: Question, waiting: WaitingTurn
    ) -> Answered | TurnPutOff | None:
        """Return the answer from the batch of a turn, or when to look again; None: the turn left
        its batch unanswered.
        """
        batch = ProviderBatch.of_owner(waiting.batch)
        try:
            known = await self._look(model, batch)
        except (ModelCallFailed, TimeoutError) as error:
            reason = f"batch {batch.name} cannot be looked at: {str(error) or 'no answer in time'}"
            log.warning("batch waits", reason=reason, correlation_id=question.run.experiment_id)
            return TurnPutOff(reason, self._pause(batch))
        if known.results is not None:
            lease = Lease(waiting.lease, LEASE_SECONDS, waiting.reserve)
            result = self._result(model, question, lease, known.results)
            note_outcome(model.in_batch, result, self._age(batch), self._observer)
            return Answered(lease, result)
        if not (known.is_lost or known.refusal):
            return TurnPutOff(f"it waits in batch {batch.name}", self._pause(batch))
        await self._preparer.leases.give_back([waiting.lease])
        return None if known.refusal is None else self._after(known.refusal, question)

    def _result(
        self, model: CalledModel, question: Question, lease: Lease, results: Mapping[str, bytes]
    ) -> Reply | ModelCallFailed:
        line = results.get(lease.key.lease_id)
        if line is None:
            message = "the batch ended without an answer to this call"
            return ModelCallFailed(FailureKind.OVERLOADED, message, retryable=True)
        try:
            return checked(self._batches_of(model).reply(question, line), model, lease.reserve)
        except ModelCallFailed as failure:
            return failure
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"the batch has a result that cannot be read: {error}"
            return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)

    async def _view(self, experiment_id: str) -> _View:
        view = self._views.setdefault(experiment_id, _View())
        async with view.reading:
            if _now() - view.read_at > VIEW_SECONDS:
                turns = await self._store.waiting_turns(experiment_id)
                view.turns = {TurnKey(each.lease.run_id, each.lease.turn): each for each in turns}
                view.read_at = _now()
                self._forget_ended()
        return view

    def _forget_ended(self) -> None:
        """Forget experiments and batches without waiting turns."""
        self._views = {
            id_: each
            for id_, each in self._views.items()
            if each.turns or each.reading.locked() or _now() - each.read_at < VIEW_SECONDS
        }
        waiting = {turn.batch for view in self._views.values() for turn in view.turns.values()}
        self._known = {
            owner: each
            for owner, each in self._known.items()
            if owner in waiting or each.looking.locked()
        }

    async def _look(self, model: CalledModel, batch: ProviderBatch) -> _Known:
        """Return a batch as its provider has it, asked now and then for all its turns together.

        Raises ModelCallFailed and TimeoutError.
        """
        known = self._known.setdefault(batch.owner, _Known())
        async with known.looking:
            if known.results is None and _now() >= known.look_at:
                known.look_at = _now() + self._pause(batch) / 2
                async with asyncio.timeout(ANSWER_SECONDS):
                    state = await self._batches_of(model).look(batch)
                    known.is_lost = state is None and self._age(batch) > LOST_AFTER.total_seconds()
                    known.refusal = None if state is None else state.refusal
                    if state is not None and state.is_ended and state.refusal is None:
                        known.results = await self._batches_of(model).results(state)
        return known

    async def _gathered(self, model: CalledModel, question: Question) -> NotCalled | None:
        gathered = self._gathering.get(model)
        if gathered is None:
            gathered = self._gathering[model] = []
            handing = self._hand_over(model, gathered)
            # Without the log fields of the run that happens to be the first one.
            task = asyncio.create_task(handing, name="batch", context=Context())
            self._submitting.add(task)
            task.add_done_callback(self._submitting.discard)
        waiter = _Gathered(question, asyncio.get_running_loop().create_future())
        gathered.append(waiter)
        return await waiter.verdict

    async def _hand_over(self, model: CalledModel, gathered: list[_Gathered]) -> None:
        """Make a batch of the turns that gather, and give each run the verdict."""
        verdicts: Sequence[NotCalled | Exception | None]
        draining = self._preparer.draining
        try:
            await wait_at_most(GATHER_SECONDS, draining)
            del self._gathering[model]
            gathered[:] = [each for each in gathered if not each.verdict.done()]
            if draining.is_set():
                verdicts = [TurnPutOff("the runner is draining") for _ in gathered]
            else:
                verdicts = await self._submit(model, [each.question for each in gathered])
        except asyncio.CancelledError:
            verdicts = [TurnPutOff("the runner is draining") for _ in gathered]
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the runs
            verdicts = [error for _ in gathered]
        for each, verdict in zip(gathered, verdicts, strict=True):
            if each.verdict.done():
                continue
            if isinstance(verdict, Exception) and not isinstance(verdict, ModelCallFailed):
                each.verdict.set_exception(verdict)
            else:
                each.verdict.set_result(verdict)

    async def _submit(
        self, model: CalledModel, questions: Sequence[Question]
    ) -> list[NotCalled | None]:
        batch = ProviderBatch.new(model.entry.id, self._clock.now())
        leases = [
            Lease(usual.key._replace(lease_id=batch.entry(number)), LEASE_SECONDS, usual.reserve)
            for number, usual in enumerate(
                self._preparer.new_lease(model.in_batch, each) for each in questions
            )
        ]
        # The intent comes first: a batch that nobody knows would be paid for and never read.
        answers = await self._store.take_leases(
            leases, batch.owner, may_judge=self._preparer.leases.heartbeat.may_judge
        )
        self._views.pop(questions[0].run.experiment_id, None)
        calls = {
            lease.key.lease_id: question
            for lease, question, answer in zip(leases, questions, answers, strict=True)
            if answer is LeaseAnswer.GRANTED
        }
        taken = [lease.key for lease in leases if lease.key.lease_id in calls]
        verdict = await self._submitted(model, batch, calls, taken) if calls else None
        return [
            verdict if answer is LeaseAnswer.GRANTED else await self._not_leased(answer, lease)
            for answer, lease in zip(answers, leases, strict=True)
        ]

    async def _submitted(
        self,
        model: CalledModel,
        batch: ProviderBatch,
        calls: Mapping[str, Question],
        taken: Sequence[LeaseKey],
    ) -> NotCalled | None:
        """Hand a batch over; returns what its turns do next."""
        try:
            async with asyncio.timeout(SUBMIT_SECONDS):
                await self._batches_of(model).submit(batch, calls)
        except ModelCallFailed as failure:
            if failure.kind in _REFUSED:
                await self._preparer.leases.give_back(taken)
                return self._after(failure, next(iter(calls.values())))
            reason = str(failure)
        except (TimeoutError, KeyError) as error:
            reason = f"no answer about it could be read: {error!r}"
        else:
            log.info("batch handed over", model=batch.model_id, batch=batch.name, turns=len(calls))
            return TurnPutOff(f"it waits in batch {batch.name}", SHORTEST_LOOK)
        log.warning("batch may not have been handed over", batch=batch.name, reason=reason)
        return TurnPutOff(f"batch {batch.name} is looked for at the provider", SHORTEST_LOOK)

    def _after(self, failure: ModelCallFailed, question: Question) -> TurnPutOff | None:
        """Return what follows from a refused batch: a later one, or calls."""
        if failure.kind in (FailureKind.AUTH, FailureKind.TLS):
            return None  # nothing that a batch alone gets: a call shows it, and stops the model
        if failure.kind is FailureKind.RATE_LIMITED:
            return TurnPutOff(str(failure), failure.retry_after or LONGEST_LOOK)
        key = question.run.experiment_id, question.run.model_id
        if key not in self._refused:
            self._refused.add(key)
            self._troubles.batch_refused(question.run, failure)
        return None

    async def _not_leased(self, answer: LeaseAnswer, lease: Lease) -> NotCalled:
        if answer is LeaseAnswer.HELD:
            return TurnPutOff("another batch or another runner has this turn", SHORTEST_LOOK)
        reason = await self._preparer.not_leased(answer, lease)
        if isinstance(reason, NoRoomYet):
            return TurnPutOff("calls in flight have reserved the rest of the budget", SHORTEST_LOOK)
        return reason

    def _batches_of(self, model: CalledModel) -> HttpBatches:
        if (batches := model.batches) is None:
            raise ValueError(f"model {model.entry.id} has no batches")
        return batches

    def _age(self, batch: ProviderBatch) -> float:
        return (self._clock.now() - batch.begun_at).total_seconds()

    def _pause(self, batch: ProviderBatch) -> float:
        """Seconds until the next look at a batch."""
        return min(LONGEST_LOOK, max(SHORTEST_LOOK, self._age(batch) / 10))


def _now() -> float:
    return asyncio.get_running_loop().time()
