"""From raw deliveries to settlements: decode, handle, publish, and only then settle.

A crash at any point is repaired by redelivery: what was stored is found again under its key, what
was published is published again under the same id, and whoever consumes it counts it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from socratic_bench.consuming.outcomes import (
    Emit,
    Failed,
    Handled,
    Handler,
    Outcome,
    Reject,
    Retry,
    Work,
)
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.consuming.settlements import Ack, DeadLetterIt, RetryLater, Settlement
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    InvalidEvent,
    StoreBroken,
    StoreUnavailable,
)
from socratic_bench.events.codec import Event, decode, encode
from socratic_bench.ports.broker import Delivery, Message

log = structlog.get_logger(__name__)

REASON_LENGTH: Final = 500
"""Characters of a reason that travel with a dead letter."""

PATIENCE: Final = 840.0
"""Seconds that work is kept in hand, at most, while the store or the broker is away. To give it
back at once would use its deliveries up within minutes, and make a dead letter of good work; this
way they last for hours. Brokers want what they handed out settled within a quarter of an hour."""

COME_BACK: Final = 60.0
"""Seconds until work that was given back because the store or the broker is away comes again."""

FATAL: Final = (StoreBroken, BrokerClosed)
"""Nothing goes on until somebody acts."""

AWAY: Final = (StoreUnavailable, BrokerError)
"""The work is good, and what it needs is not there for now."""

Publish = Callable[[Sequence[Message]], Awaitable[None]]


def to_message(event: Event) -> Message:
    """The event, encoded, with what a broker needs to know of it."""
    return Message(
        event.id,
        event.type,
        event.partitionkey,
        encode(event),
        event.source,
        event.subject,
        event.correlationid,
    )


@dataclass(slots=True)
class _Waiting:
    """Work, in hand, that waits for a store or a broker that is away."""

    deliveries: dict[Work[Event], Delivery] = field(default_factory=dict)
    reason: str = ""

    def add(self, work: Work[Event], delivery: Delivery, error: Exception) -> None:
        self.deliveries[work] = delivery
        self.reason = _reason(error)


class Dispatcher:
    """Runs one handler over deliveries of one event type."""

    def __init__(
        self,
        handler: Handler[Any],
        event_type: type[Event],
        publish: Publish,
        retry_policy: RetryPolicy | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        """`patience` is for how many seconds work waits in hand for a store or broker that is
        away.
        """
        self._handler = handler
        self._event_type = event_type
        self._publish = publish
        self._retry_policy = retry_policy or RetryPolicy()
        self._patience = patience
        self._draining = asyncio.Event()

    def drain(self) -> None:
        """Wait for no store or broker any more: what they keep from being done is given back."""
        self._draining.set()

    async def dispatch(
        self, deliveries: Sequence[Delivery]
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        """Handle deliveries; yields settlements as soon as their events are published.

        Every delivery is settled exactly once. Work that the store or the broker keeps from being
        done waits here and is handled again. Raises StoreBroken or BrokerClosed, with the rest
        unsettled, when nothing can go on until somebody acts.
        """
        unsettled, undecodable = self._decode(deliveries)
        if undecodable:
            yield undecodable
        give_up = asyncio.get_running_loop().time() + self._patience
        tries = 0
        while unsettled:
            waiting = _Waiting()
            async with aclosing(self._handle(unsettled, waiting)) as settled:
                async for settlements in settled:
                    yield settlements
            if waiting.deliveries:
                tries += 1
                if not await self._wait(waiting, tries, give_up):
                    delay, reason = self._come_back(), waiting.reason
                    yield [RetryLater(each, delay, reason) for each in waiting.deliveries.values()]
                    return
            unsettled = waiting.deliveries

    async def _wait(self, waiting: _Waiting, tries: int, give_up: float) -> bool:
        """Wait until it is time for another try; False if there is to be none."""
        delay = self._retry_policy.delay(tries)
        told = log.warning if tries == 1 else log.debug
        told("work waits", messages=len(waiting.deliveries), reason=waiting.reason)
        if asyncio.get_running_loop().time() + delay > give_up:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._draining.wait()
        return not self._draining.is_set()

    def _come_back(self) -> float:
        return 0.0 if self._draining.is_set() else COME_BACK

    def _decode(
        self, deliveries: Iterable[Delivery]
    ) -> tuple[dict[Work[Event], Delivery], list[Settlement]]:
        unsettled: dict[Work[Event], Delivery] = {}
        undecodable: list[Settlement] = []
        for delivery in deliveries:
            try:
                event = decode(delivery.message.body)
            except InvalidEvent as error:
                undecodable.append(DeadLetterIt(delivery, str(error)[:REASON_LENGTH]))
                continue
            if isinstance(event, self._event_type):
                unsettled[Work(event, delivery.attempt)] = delivery
            else:
                reason = f"this queue takes no {event.type} messages"
                undecodable.append(DeadLetterIt(delivery, reason))
        for settlement in undecodable:
            if isinstance(settlement, DeadLetterIt):
                log.warning(
                    "message rejected",
                    message_id=settlement.delivery.message.id,
                    reason=settlement.reason,
                )
        return unsettled, undecodable

    async def _handle(
        self, unsettled: dict[Work[Event], Delivery], waiting: _Waiting
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        """Settlements of what the handler finished; what has to wait is put with `waiting`."""
        if not unsettled:
            return
        try:
            async with aclosing(self._outcomes(unsettled, waiting)) as settled:
                async for settlements in settled:
                    yield settlements
        except FATAL:
            raise
        except AWAY as error:
            for work, delivery in unsettled.items():
                waiting.add(work, delivery, error)
        except Exception as error:  # noqa: BLE001 - a handler's bug must not stop the service
            if len(unsettled) == 1:
                yield [self._after_bug(work, unsettled[work], error) for work in unsettled]
                return
            # One of them is the culprit: alone, it cannot take the others along.
            for work, delivery in list(unsettled.items()):
                async with aclosing(self._handle({work: delivery}, waiting)) as settled:
                    async for settlements in settled:
                        yield settlements

    async def _outcomes(
        self, unsettled: dict[Work[Event], Delivery], waiting: _Waiting
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        """Settlements of what the handler finished; what stays in `unsettled` it did not."""
        async with aclosing(self._handler(list(unsettled))) as batches:
            async for outcomes in batches:
                events = [event for outcome in outcomes for event in _events_of(outcome)]
                if events:
                    await self._publish([to_message(event) for event in events])
                settlements: list[Settlement] = []
                for outcome in outcomes:
                    if isinstance(outcome, Emit):
                        continue
                    delivery = unsettled.pop(outcome.work)
                    if isinstance(outcome, Failed) and _is_away(outcome.error):
                        waiting.add(outcome.work, delivery, outcome.error)
                    else:
                        settlements.append(self._settlement(outcome, delivery))
                if settlements:
                    yield settlements
        if unsettled:
            raise RuntimeError(f"the handler left {len(unsettled)} pieces of work without outcome")

    def _settlement(
        self, outcome: Handled | Retry | Reject | Failed, delivery: Delivery
    ) -> Settlement:
        match outcome:
            case Handled():
                return Ack(delivery)
            case Retry(after=after, reason=reason):
                return RetryLater(delivery, after, reason)
            case Failed(work=work, error=error):
                if isinstance(error, FATAL):
                    raise error
                return self._after_bug(work, delivery, error)
            case Reject(work=work, reason=reason):
                log.warning("work rejected", reason=reason, **_about(work))
                return DeadLetterIt(delivery, reason)

    def _after_bug(self, work: Work[Event], delivery: Delivery, error: Exception) -> Settlement:
        """A bug is given a few tries."""
        log.error("handler failed", exc_info=error, **_about(work))
        if self._retry_policy.exhausted(work.attempt):
            return DeadLetterIt(delivery, _reason(error))
        return RetryLater(delivery, self._retry_policy.delay(work.attempt), _reason(error))


def _is_away(error: Exception) -> bool:
    return isinstance(error, AWAY) and not isinstance(error, FATAL)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:REASON_LENGTH]


def _about(work: Work[Event]) -> dict[str, str]:
    """What a log line about this work is found by. What work queues carry is about runs."""
    event = work.event
    return {
        "event_id": event.id,
        "run_id": event.subject,
        "correlation_id": event.correlationid,
    }


def _events_of(outcome: Outcome) -> tuple[Event, ...]:
    return outcome.publish if isinstance(outcome, Handled | Emit) else ()
