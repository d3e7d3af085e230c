"""The broker port: work queues with at-least-once delivery, and broadcasts to present listeners.

A publisher publishes a message to a type. The broker gives one copy to every declared queue that
takes the type, and to every listener if the type is a declared broadcast. Broadcasting to no
listener succeeds; publishing an undeclared type raises UnroutableMessage. The topology decides
between queue and broadcast, not the message. RabbitMQ publishes to one topic exchange and sets the
mandatory flag unless the type is a broadcast; on AWS a broadcast type is an SNS topic, and a
publisher sends to a queue directly. So every process declares all types and queues that it uses.

Messages have a group (the model, and a high priority). In a queue that keeps its groups apart, a
consumer gets the groups in turn, and at most as many messages of one group at a time as it asked
for, so that a slow group does not hold up the others. A queue whose messages all take the same
short time needs no groups.

A message that was redelivered SUSPECT_AFTER times unsettled may be the one that ends its consumers.
It becomes a suspect of its queue: the broker hands it out alone, to a consumer with nothing else in
hand, and dead-letters it after SUSPECT_AFTER further unsettled redeliveries. A slow but harmless
suspect does not keep others waiting: see `alone_for`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, Protocol

from socratic_bench.events.codec import Message

# D-051: the server counts redeliveries of all messages in hand, not only of the culprit.
SUSPECT_AFTER: Final = 5
"""Unsettled redeliveries after which the broker hands a message out alone, and further ones after
which it dead-letters the message."""


ALONE_SECONDS: Final = (2.0, 30.0)
"""Seconds that a suspect is alone in hand the first and the second time, unless the consumer
settles it before. A message that ends consumers mostly does so at once."""


def alone_for(redeliveries: int) -> float:
    """Return the seconds until the broker may hand out others beside a suspect still in hand.

    A suspect that came back unsettled more than once stays alone until it is settled: every dead
    letter was alone the last times.
    """
    return ALONE_SECONDS[redeliveries] if redeliveries < len(ALONE_SECONDS) else inf


def ended_alone(times: int) -> str:
    """Return the reason of a dead-lettered suspect."""
    return f"its consumer ended {times} times with this message alone in hand"


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue with competing consumers: one event type, one handler, one dead-letter queue."""

    name: str
    """`<consumer>-<event>`; letters, digits and hyphens."""

    event_type: str
    """The type of its messages."""

    separate_groups: bool = False
    """Whether it keeps its groups apart."""

    batch: int = 1
    """The most messages in one batch; a queue that keeps its groups apart batches each group by
    itself. The broker redelivers a batch as a whole, `Broker.depth` counts it once, and one
    consumer holds it until all of it is settled."""


class Delivery(NamedTuple):
    """A message in a consumer's hand, which the consumer must settle."""

    message: Message
    attempt: int
    """1 plus the counted retries. A redelivery after a consumer ended, lost its connection or
    drained does not count."""

    receipt: int
    """The consumer's own mark for settling it."""

    suspect: bool = False
    """Whether it may be the message that ends its consumers; it is then the only one received."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that no consumer could handle, and the reason."""

    message: Message
    queue: str
    """The queue that it comes from."""

    reason: str
    attempts: int


class Consumer(Protocol):
    """One consumer of one queue. It settles every delivery once: ack, retry or reject.

    Settling a delivery that this consumer does not hold raises DeliveryLost and changes nothing for
    its present holder; it was settled before, or went back to the queue when the consumer or the
    connection ended. A consumer waits for an unavailable broker without limit.
    """

    def serve(self, groups: Collection[str]) -> None:
        """Replace the groups that this consumer serves. Returns at once.

        A queue that keeps its groups apart needs it where a broker cannot list groups; the worker
        calls it as groups come and go. The consumer also serves every group that this broker
        object has published to.
        """
        ...

    async def heard_of_group(self) -> None:
        """Wait until another process publishes to a group that this consumer does not serve.

        A hint to list the groups again, which the broker may drop. A consumer that needs no `serve`
        waits for ever.
        """
        ...

    async def receive(self, limit: int) -> Sequence[Delivery]:
        """Wait for and return 1 to `limit` deliveries; none once draining.

        Also waits while the consumer holds as many unsettled deliveries as it may. A waiting
        suspect comes as the only delivery once the consumer has settled all others; the next
        deliveries wait until it is settled or was in hand for the seconds of `alone_for`. Yields to
        other tasks even if deliveries are ready.
        """
        ...

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        """Settle deliveries as done: the broker never delivers them again.

        If some are not in hand, settles the others before it raises DeliveryLost.
        """
        ...

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        """Have the broker deliver this again after `delay` seconds; others do not wait meanwhile.

        The broker forgets its redeliveries and any suspicion. A counted retry is for a failed
        attempt: the next delivery is the next attempt, and the broker dead-letters the message with
        `reason` after the queue's number of attempts. An uncounted retry postpones the message, as
        often as the caller likes.
        """
        ...

    async def reject(self, delivery: Delivery, reason: str) -> None:
        """Dead-letter this delivery: no redelivery can help."""
        ...

    def drain(self) -> None:
        """Take no more: from now on `receive` returns an empty list. The caller settles the rest.

        Deliveries not yet handed out go back to the queue, without counting as redelivered.
        """
        ...


class Listener(Protocol):
    """Hears broadcasts from the moment it is open; a slow listener loses the oldest.

    The iteration ends with the context; closing the broker before raises BrokerClosed.
    """

    def __aiter__(self) -> AsyncIterator[Message]: ...


class Broker(Protocol):
    """Carries messages. It delivers every accepted message at least once, despite crashes."""

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        """Make sure that these queues, their dead-letter queues and broadcasts exist. Idempotent.

        Listeners can hear the types in `broadcasts`; a queue may take such a type too.
        Raises BrokerError for a queue that exists and takes another type.
        """
        ...

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish; returns once the broker has taken responsibility for all messages.

        Raises BrokerUnavailable if the broker does not do so in time; it may have taken some. Waits
        while a queue is full, never for a listener. After a cancellation each message is in all of
        its queues or in none. Raises UnroutableMessage for a type that no declared queue takes and
        that is not a broadcast; the broker may have taken the other messages.
        """
        ...

    def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AbstractAsyncContextManager[Consumer]:
        """Consume a queue, with at most `prefetch` deliveries unsettled at a time.

        In a queue that keeps its groups apart, at most `prefetch_per_group` of one group are
        unsettled. When the context ends, unsettled deliveries go back to the queue, and the broker
        delivers them again as the same attempt; those handed out count as redelivered unsettled.
        """
        ...

    def listen(self, *event_types: str) -> AbstractAsyncContextManager[Listener]:
        """Hear every message of these types that is published while the context is open.

        Raises BrokerError for a type that is not a declared broadcast.
        """
        ...

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int | None:
        """Count the waiting messages of a queue, suspects and delayed ones included, unsettled ones
        not; None where the broker cannot tell. Where a broker cannot list the groups of a queue
        that keeps them apart, it counts those of `groups`.

        With a `group`, count at least that group's waiting messages and those in hand of this
        broker's consumers. Messages that other processes hold or delay need not count.
        """
        ...

    async def dead_letter_depth(self, queue: str) -> int:
        """Count the dead letters of a declared or inspected queue, in the units of `depth`.

        0 for a missing queue. A cheap call.
        """
        ...

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the oldest dead letters of a queue that was declared or inspected.

        None of a missing queue. The letters stay; no look may make the server drop one.
        """
        ...

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        """Put dead letters back into their queue as new; returns their number."""
        ...

    async def purge_dead_letters(self, queue: str) -> int:
        """Delete the dead letters of a queue; returns their number."""
        ...

    async def remove_group(self, queue: str, group: str) -> None:
        """Delete the waiting messages of a group, and the broker's means for it, in a queue that
        keeps its groups apart.

        The broker waits a moment for consumers to stop serving the group. Delayed and suspect
        messages may stay. The group exists again once a consumer serves it or a publisher uses it.
        """
        ...

    async def ping(self) -> None:
        """Ask the broker for an answer without content. Raises BrokerUnavailable without one."""
        ...

    def problems(self) -> Sequence[str]:
        """Return a sentence for each declared queue and served group whose messages do not flow:
        the queue is missing, has no leader, or this broker's consumer does not consume it. Reports
        the latest observation without asking the server.
        """
        ...

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        """Ask the server, and return a sentence with the remedy for each of these queues, and their
        secondary queues, that is missing or has no leader. Declares nothing. `problems` of the
        consuming process covers groups.
        """
        ...

    async def close(self) -> None:
        """Close every consumer and listener, and the connection. A second call does nothing.

        Waiting and later calls raise BrokerClosed.
        """
        ...
