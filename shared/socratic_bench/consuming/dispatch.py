"""From raw deliveries to settlements: decode, handle, publish, and only then settle.

A crash at any point is repaired by redelivery: what was stored is found again under its key, what
was published is published again under the same id, and whoever consumes it counts it once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from socratic_bench.errors import BrokerError, InvalidEvent, StoreBroken, StoreUnavailable
from socratic_bench.events.codec import Event, decode, encode
from socratic_bench.ports.broker import Delivery, Message

log = structlog.get_logger(__name__)

REASON_LENGTH = 500
"""Characters of a reason that travel with a dead letter."""


class Ack(NamedTuple):
    """Done: never deliver it again."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Deliver it again after `delay` seconds."""

    delivery: Delivery
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class DeadLetterIt:
    """No redelivery can help."""

    delivery: Delivery
    reason: str


Settlement = Ack | RetryLater | DeadLetterIt
Publish = Callable[[Sequence[Message]], Awaitable[None]]


def to_message(event: Event) -> Message:
    """The event, encoded, with what a broker needs to know of it."""
    return Message(id=event.id, type=event.type, group=event.partitionkey, body=encode(event))


class Dispatcher:
    """Runs one handler over deliveries of one event type."""

    def __init__(
        self,
        handler: Handler[Any],
        event_type: type[Event],
        publish: Publish,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self._handler = handler
        self._event_type = event_type
        self._publish = publish
        self._retry_policy = retry_policy or RetryPolicy()

    async def dispatch(
        self, deliveries: Sequence[Delivery]
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        """Handle deliveries; yields settlements as soon as their events are published.

        Every delivery is settled exactly once. Raises StoreBroken, with the rest unsettled, when
        nothing can go on until somebody acts.
        """
        unsettled, undecodable = self._decode(deliveries)
        if undecodable:
            yield undecodable
        async with aclosing(self._handle(unsettled)) as settled:
            async for settlements in settled:
                yield settlements

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
        self, unsettled: dict[Work[Event], Delivery]
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        if not unsettled:
            return
        try:
            async with aclosing(self._outcomes(unsettled)) as settled:
                async for settlements in settled:
                    yield settlements
        except StoreBroken:
            raise
        except (StoreUnavailable, BrokerError) as error:
            yield [self._after_error(work, unsettled[work], error) for work in unsettled]
        except Exception as error:  # noqa: BLE001 - a handler's bug must not stop the service
            if len(unsettled) == 1:
                yield [self._after_error(work, unsettled[work], error) for work in unsettled]
                return
            # One of them is the culprit: alone, it cannot take the others along.
            for work, delivery in list(unsettled.items()):
                async with aclosing(self._handle({work: delivery})) as settled:
                    async for settlements in settled:
                        yield settlements

    async def _outcomes(
        self, unsettled: dict[Work[Event], Delivery]
    ) -> AsyncGenerator[Sequence[Settlement], None]:
        """Settlements of what the handler finished; what stays in `unsettled` it did not."""
        async with aclosing(self._handler(list(unsettled))) as batches:
            async for outcomes in batches:
                events = [event for outcome in outcomes for event in _events_of(outcome)]
                if events:
                    await self._publish([to_message(event) for event in events])
                settlements = [
                    self._settlement(outcome, unsettled.pop(outcome.work))
                    for outcome in outcomes
                    if not isinstance(outcome, Emit)
                ]
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
                return self._after_error(work, delivery, error)
            case Reject(work=work, reason=reason):
                log.warning("work rejected", event_id=work.event.id, reason=reason)
                return DeadLetterIt(delivery, reason)

    def _after_error(self, work: Work[Event], delivery: Delivery, error: Exception) -> Settlement:
        """What follows when handling broke: nothing goes on with a broken store, an absent one is
        waited for, and a bug is given a few tries.
        """
        if isinstance(error, StoreBroken):
            raise error
        reason = f"{type(error).__name__}: {error}"[:REASON_LENGTH]
        delay = self._retry_policy.delay(work.attempt)
        if isinstance(error, StoreUnavailable | BrokerError):
            log.warning("work postponed", event_id=work.event.id, reason=reason)
            return RetryLater(delivery, delay, reason)
        log.error("handler failed", event_id=work.event.id, exc_info=error)
        if self._retry_policy.exhausted(work.attempt):
            return DeadLetterIt(delivery, reason)
        return RetryLater(delivery, delay, reason)


def _events_of(outcome: Outcome) -> tuple[Event, ...]:
    return outcome.publish if isinstance(outcome, Handled | Emit) else ()
