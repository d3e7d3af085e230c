"""From raw deliveries to settlements: decode, handle, publish, and only then settle.

Redelivery repairs a crash at any point: the handler finds stored results under their keys, it
publishes events again under the same ids, and their consumers count each id once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.outcomes import (
    Ack,
    DeadLetterIt,
    Emit,
    Failed,
    Handled,
    Handler,
    Outcome,
    Postponed,
    Rejected,
    RetryLater,
    Settlement,
    Work,
)
from socratic_bench.consuming.publication import Publication, Publish, Ready
from socratic_bench.consuming.waits import WORK_WAITS, WaitNews, Waits
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    InvalidEvent,
    StoreBroken,
    StoreRefused,
    StoreUnavailable,
)
from socratic_bench.events.codec import Event, event_of, to_message
from socratic_bench.ports.broker import Delivery

log = structlog.get_logger(__name__)

REASON_LENGTH: Final = 500
"""Characters of a reason that travel with a dead letter."""

PATIENCE: Final = 840.0
"""The longest time in seconds that work waits in hand for an unavailable store. Brokers want their
deliveries settled within a quarter of an hour."""

REDELIVERY_DELAY: Final = 60.0
"""Delay in seconds before the broker redelivers work that an unavailable store sent back."""

FATAL: Final = (StoreBroken, BrokerClosed)
"""Errors after which work stops until an operator acts."""

PUBLISHING: Final = (Handled, Emit)
"""Outcomes that bring events."""

UNAVAILABLE: Final = (StoreUnavailable, BrokerError)
"""Errors of good work whose store or broker is unavailable for now."""

Put = Callable[[Ready], None]
OnDecoded = Callable[[Iterable[datetime]], None]


@dataclass(slots=True)
class _Waiting:
    """Work in hand that waits for an unavailable store."""

    deliveries: dict[Work[Event], Delivery] = field(default_factory=dict)
    error: Exception = field(default_factory=StoreUnavailable)
    news: WaitNews = field(default_factory=WaitNews)

    def add(self, work: Work[Event], delivery: Delivery, error: Exception) -> None:
        self.deliveries[work] = delivery
        self.error = error


class Dispatcher:
    """Runs one handler over deliveries of one event type."""

    def __init__(
        self,
        handler: Handler[Any],
        event_type: type[Event],
        retry_policy: RetryPolicy | None = None,
        *,
        patience: float = PATIENCE,
        waits: Waits | None = None,
    ) -> None:
        """Work waits in hand for an unavailable store for at most `patience` seconds; `waits`
        holds the errors that the handler itself waits out.
        """
        self._handler = handler
        self._event_type = event_type
        self.retry_policy = retry_policy or RetryPolicy()
        self._patience = patience
        self._draining = asyncio.Event()
        self.waits = waits or Waits()

    def drain(self) -> None:
        """Stop waiting for an unavailable store; postpone the work that needs it."""
        self._draining.set()

    def resume(self) -> None:
        """Wait for an unavailable store again, after a drain: a function drains at the end of each
        invocation.
        """
        self._draining.clear()

    async def dispatch(
        self,
        deliveries: Sequence[Delivery],
        put: Put,
        on_decoded: OnDecoded = lambda _times: None,
    ) -> None:
        """Handle deliveries; calls `put` with events and settlements as soon as they are ready.

        Calls `on_decoded` with the times of the events once they are decoded. Settles every
        delivery exactly once. Work that needs an unavailable store waits here, then the handler
        gets it again. Raises StoreBroken or BrokerClosed, perhaps in an ExceptionGroup, with the
        rest unsettled, if work has to stop until an operator acts.
        """
        unsettled, undecodable = self._decode(deliveries)
        on_decoded(work.event.time for work in unsettled)
        if undecodable:
            put(Ready((), undecodable))
        give_up = asyncio.get_running_loop().time() + self._patience
        tries, news = 0, WaitNews()
        with self.waits.waiting() as waits_for:

            def put_what_is_ready(ready: Ready) -> None:
                waits_for(None)
                put(ready)

            while unsettled:
                waiting = _Waiting(news=news)
                await self._handle(unsettled, waiting, put_what_is_ready)
                unsettled = waiting.deliveries
                if unsettled:
                    waits_for(waiting.error)
                tries += 1
                if unsettled and not await self._wait(waiting, tries, give_up):
                    put(Ready((), self._postponed(waiting)))
                    return

    async def _wait(self, waiting: _Waiting, tries: int, give_up: float) -> bool:
        """Wait until the next try is due; False if no further try follows."""
        delay = self.retry_policy.delay(tries)
        log.log(
            waiting.news.level(waiting.error),
            WORK_WAITS,
            messages=len(waiting.deliveries),
            reason=_reason(waiting.error),
        )
        if asyncio.get_running_loop().time() + delay > give_up:
            return False
        return not await wait_at_most(delay, self._draining)

    def _postponed(self, waiting: _Waiting) -> list[Settlement]:
        delay = 0.0 if self._draining.is_set() else REDELIVERY_DELAY
        reason = _reason(waiting.error)
        return [
            RetryLater(each, delay, reason, counted=False) for each in waiting.deliveries.values()
        ]

    def _decode(
        self, deliveries: Iterable[Delivery]
    ) -> tuple[dict[Work[Event], Delivery], list[Settlement]]:
        unsettled: dict[Work[Event], Delivery] = {}
        undecodable: list[Settlement] = []
        for delivery in deliveries:
            try:
                event = event_of(delivery.message)
            except InvalidEvent as error:
                undecodable.append(_undecodable(delivery, str(error)[:REASON_LENGTH]))
                continue
            if isinstance(event, self._event_type):
                unsettled[Work(event, delivery.attempt)] = delivery
            else:
                reason = f"this queue takes no {event.type} messages"
                undecodable.append(_undecodable(delivery, reason))
        return unsettled, undecodable

    async def _handle(
        self, unsettled: dict[Work[Event], Delivery], waiting: _Waiting, put: Put
    ) -> None:
        """Put the handler's outcomes; add work that has to wait to `waiting`."""
        try:
            await self._run_handler(unsettled, waiting, put)
        except FATAL:
            raise
        except UNAVAILABLE as error:
            for work, delivery in unsettled.items():
                waiting.add(work, delivery, error)
        except Exception as error:  # noqa: BLE001 - a handler's bug must not stop the service
            if len(unsettled) == 1:
                put(Ready((), [self._after_bug(*one, error) for one in unsettled.items()]))
                return
            # One of them broke the handler: alone, it neither fails nor delays the others.
            async with asyncio.TaskGroup() as alone:
                for work, delivery in unsettled.items():
                    alone.create_task(self._handle({work: delivery}, waiting, put))

    async def _run_handler(
        self, unsettled: dict[Work[Event], Delivery], waiting: _Waiting, put: Put
    ) -> None:
        """Put the handler's outcomes; unfinished work stays in `unsettled`."""
        async with aclosing(self._handler(list(unsettled))) as batches:
            async for outcomes in batches:
                messages = [to_message(event) for each in outcomes for event in _events_of(each)]
                settlements: list[Settlement] = []
                for outcome in outcomes:
                    if isinstance(outcome, Emit):
                        continue
                    delivery = unsettled.pop(outcome.work)
                    if isinstance(outcome, Failed) and _is_unavailable(outcome.error):
                        waiting.add(outcome.work, delivery, outcome.error)
                    else:
                        settlements.append(self._settlement(outcome, delivery))
                put(Ready(messages, settlements))
        if unsettled:
            raise RuntimeError(f"the handler left {len(unsettled)} pieces of work without outcome")

    def _settlement(
        self, outcome: Handled | Postponed | Rejected | Failed, delivery: Delivery
    ) -> Settlement:
        match outcome:
            case Handled():
                return Ack(delivery)
            case Postponed(after=after, reason=reason):
                # D-051: only a counted retry is an attempt; a postponement is not a failure.
                return RetryLater(delivery, after, reason, counted=False)
            case Failed(work=work, error=error):
                if isinstance(error, FATAL):
                    raise error
                return self._after_bug(work, delivery, error)
            case Rejected(work=work, reason=reason):
                log.warning("work rejected", reason=reason, **_about(work))
                return DeadLetterIt(delivery, reason)

    def _after_bug(self, work: Work[Event], delivery: Delivery, error: Exception) -> Settlement:
        """Retry after a bug a few times; never retry work that the store refuses."""
        log.error("handler failed", exc_info=error, **_about(work))
        if isinstance(error, StoreRefused) or self.retry_policy.exhausted(work.attempt):
            return DeadLetterIt(delivery, _reason(error))
        return RetryLater(delivery, self.retry_policy.delay(work.attempt), _reason(error))


def _undecodable(delivery: Delivery, reason: str) -> DeadLetterIt:
    log.warning("message rejected", message_id=delivery.message.id, reason=reason)
    return DeadLetterIt(delivery, reason)


def _is_unavailable(error: Exception) -> bool:
    return isinstance(error, UNAVAILABLE) and not isinstance(error, FATAL)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:REASON_LENGTH]


def _about(work: Work[Event]) -> dict[str, str]:
    """The fields by which one finds log lines about this work: its event and its run."""
    event = work.event
    return {
        "event_id": event.id,
        "run_id": event.subject,
        "correlation_id": event.correlationid,
    }


def _events_of(outcome: Outcome) -> tuple[Event, ...]:
    return outcome.publish if isinstance(outcome, PUBLISHING) else ()


Settle = Callable[[Sequence[Settlement]], Awaitable[None]]


class BatchDispatcher:
    """Handles batches, publishes their outcomes, and only then settles their deliveries."""

    def __init__(
        self,
        publish: Publish,
        dispatcher: Dispatcher,
        *,
        on_drain: Callable[[], None] | None = None,
        on_resume: Callable[[], None] | None = None,
        longest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`on_drain` tells the handler to begin nothing new, and `on_resume` takes that back;
        `longest` gives the seconds that the handler may still need for the deliveries in hand.
        """
        self._publish = publish
        self._dispatcher = dispatcher
        self._on_drain = on_drain
        self._on_resume = on_resume
        self.longest = longest

    @property
    def waits_for(self) -> Exception | None:
        """Why some work waits for the store or the broker; None while none does."""
        return self._dispatcher.waits.error

    def drain(self) -> None:
        """Begin nothing new, and stop waiting for an unavailable store."""
        self._dispatcher.drain()
        if self._on_drain is not None:
            self._on_drain()

    def resume(self) -> None:
        """Begin new work again, after a drain."""
        self._dispatcher.resume()
        if self._on_resume is not None:
            self._on_resume()

    async def dispatch(
        self,
        deliveries: Sequence[Delivery],
        settle: Settle,
        on_decoded: OnDecoded = lambda _times: None,
    ) -> None:
        """Handle and publish; calls `settle` with settlements as soon as they are due.

        Cancelled, it leaves the rest unsettled. `on_decoded` and errors are those of
        `Dispatcher.dispatch`, the errors in an ExceptionGroup.
        """
        publication = Publication(
            self._publish, settle, self._dispatcher.waits, self._dispatcher.retry_policy
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publication.run())
            await self._dispatcher.dispatch(deliveries, publication.put, on_decoded)
            publication.end()

    async def settlements(self, deliveries: Sequence[Delivery]) -> Sequence[Settlement]:
        """Handle and publish a batch; returns the settlement of each delivery, in any order."""
        settlements: list[Settlement] = []

        async def collect(ready: Sequence[Settlement]) -> None:
            settlements.extend(ready)

        await self.dispatch(deliveries, collect)
        return settlements
