"""The broker port: work queues with at-least-once delivery, and broadcasts for who listens now.

A message is published to a type. Every declared queue that takes the type gets one copy, and if
the type is declared as a broadcast, every listener too; that nobody listens is no mistake, that a
type is declared as neither is one. Which it is belongs to the topology, not to a message: whoever
publishes need not know, and each broker has what it needs. RabbitMQ publishes to one topic exchange
and sets the mandatory flag unless the type is a broadcast; on AWS a broadcast type is an SNS topic
and a queue is sent to directly. So every process declares what it publishes to, consumes or
listens to.

Messages have a group (the model). In a queue that keeps its groups apart, a consumer is given the
groups in turn, and no more of one group at a time than it asked for, so that a slow group does not
hold up the others. Where every message is handled in the same short time, there is no need for it.

A message that is redelivered SUSPECT_AFTER times unsettled may be what ends its consumers. It
becomes a suspect of its queue: it is handed out alone, to a consumer that has nothing else in hand,
and if it comes back unsettled SUSPECT_AFTER times again, it is a dead letter. One that takes long
and ends nobody does not keep the others waiting: see `alone_for`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, Protocol

from socratic_bench.events.message import Message

# D-052: the server counts a redelivery of each message in hand, not only of the killer.
SUSPECT_AFTER: Final = 5
"""How often a message is redelivered unsettled until it is handed out alone, and alone again until
it is a dead letter."""


ALONE_SECONDS: Final = (2.0, 30.0)
"""For how long a suspect is alone in hand, unless it is settled before, the first time and the
second. Whatever ends consumers mostly does so at once."""


def alone_for(redeliveries: int) -> float:
    """Seconds after which others may be handed out beside a suspect that is still in hand.

    One that came back unsettled more than once is alone until it is settled: nothing becomes a dead
    letter that was not alone the last times.
    """
    return ALONE_SECONDS[redeliveries] if redeliveries < len(ALONE_SECONDS) else inf


def ended_alone(times: int) -> str:
    """Why a suspect is a dead letter."""
    return f"its consumer ended {times} times after it was given this message alone"


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue with competing consumers: one event type, one handler, one dead-letter queue."""

    name: str
    """`<consumer>-<event>`; letters, digits and hyphens."""

    event_type: str
    """The type of the messages it takes."""

    separate_groups: bool = False
    """Whether its groups are kept apart."""

    batch: int = 1
    """How many messages may travel together, at most, where that makes a broker faster; of one
    group only, if the groups are kept apart. A batch is redelivered as a whole, is one message to
    `Broker.depth`, and is held in one consumer's hand until all of it is settled."""


class Delivery(NamedTuple):
    """A message handed to a consumer, which must settle it."""

    message: Message
    attempt: int
    """1, and one more for each counted retry. A redelivery counts nothing: its consumer ended, or
    was killed, or lost its connection, or drained."""

    receipt: int
    """What the consumer settles it by; of no meaning to anybody else."""

    suspect: bool = False
    """Whether it may be what ends its consumers, and is the only one of its receive."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message nobody could handle, and why."""

    message: Message
    queue: str
    """The queue it was taken from."""

    reason: str
    attempts: int


class Consumer(Protocol):
    """One consumer of one queue. Every delivery is settled once: ack, retry or reject.

    Settling what is not in this consumer's hand (it was settled before, or its consumer or the
    connection ended and it went back to the queue) raises DeliveryLost, and changes nothing for
    whoever holds it now. While the broker cannot be reached, a consumer goes on waiting for it.
    """

    def serve(self, groups: Collection[str]) -> None:
        """These are the groups there are, instead of those said before.

        For a queue that keeps its groups apart, where a broker cannot list them: a consumer is
        told again and again, as groups come and go. It also serves every group that this broker
        has published to. Waits for nothing.
        """
        ...

    async def receive(self, limit: int) -> Sequence[Delivery]:
        """Between 1 and `limit` deliveries; waits for the first. Empty once draining.

        Waits too while as many deliveries are unsettled as the consumer may hold. While a suspect
        waits for this consumer, nothing else is handed out: it comes as the only delivery once
        everything in hand is settled, and what comes next waits until it is settled too, or in hand
        for `alone_for` so long. Gives way to other tasks even if deliveries are ready.
        """
        ...

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        """These are done: never deliver them again.

        If some are not in hand, the others are settled before DeliveryLost is raised.
        """
        ...

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        """Deliver this again after `delay` seconds, without holding up others meanwhile.

        It is no suspect any more, and its redeliveries are forgotten. A counted retry is for what
        was tried and failed: the next delivery is the next attempt, and after as many attempts as
        the queue allows the message is dead-lettered with `reason` instead. One that is not counted
        postpones the message, as often as the caller likes.
        """
        ...

    async def reject(self, delivery: Delivery, reason: str) -> None:
        """Dead-letter this: no redelivery can help."""
        ...

    def drain(self) -> None:
        """Take no more: `receive` returns nothing from now on. What is in hand is to be settled.

        What was not handed out goes back to the queue, and was not redelivered by that.
        """
        ...


class Listener(Protocol):
    """Hears broadcasts from the moment it is open; one that lags loses the oldest.

    The iteration ends with the context, and with BrokerClosed if the broker is closed before.
    """

    def __aiter__(self) -> AsyncIterator[Message]: ...


class Broker(Protocol):
    """Carries messages. What it accepted is delivered at least once, whatever crashes."""

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        """Make sure that these queues, their dead-letter queues and broadcasts exist. Idempotent.

        `broadcasts` are the types that can be listened to; a queue may take such a type too.
        Raises BrokerError for a queue that exists and takes another type.
        """
        ...

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish; returns once the broker has taken responsibility for all of them.

        Raises BrokerUnavailable if that did not happen in time; some may have been published.
        Waits while a queue is full; a listener is never waited for. If it is cancelled meanwhile,
        each message is in all of its queues or in none. Raises UnroutableMessage if no declared
        queue takes the type of one and it is not a broadcast; the others may have been published.
        """
        ...

    def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AbstractAsyncContextManager[Consumer]:
        """Consume a queue, with at most `prefetch` deliveries unsettled at a time.

        Of one group at most `prefetch_per_group` are unsettled, in a queue that keeps its groups
        apart. When the context ends, whatever is unsettled goes back to the queue and is delivered
        again as the same attempt; what was handed out counts as redelivered unsettled.
        """
        ...

    def listen(self, *event_types: str) -> AbstractAsyncContextManager[Listener]:
        """Hear every message of these types that is published while the context is open.

        Raises BrokerError for a type that is not declared as a broadcast.
        """
        ...

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int | None:
        """How many messages wait in the queue, suspects and delayed ones included, unsettled ones
        not; None where the broker cannot tell. These `groups` are counted too, where a broker
        cannot list those of a queue that keeps its groups apart.

        With a `group`, how many of that group there are at least: those that wait, and those that
        this broker's consumers have in hand. What other processes have in hand, until it is settled
        or until it is due, need not be counted.
        """
        ...

    async def dead_letter_depth(self, queue: str) -> int:
        """How many dead letters a queue has, as `depth` counts. Cheap to ask for."""
        ...

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        """The oldest dead letters of a queue, which stay where they are."""
        ...

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        """Put dead letters back into their queue as new; returns how many."""
        ...

    async def purge_dead_letters(self, queue: str) -> int:
        """Throw the dead letters of a queue away; returns how many."""
        ...

    async def remove_group(self, queue: str, group: str) -> None:
        """Throw away what waits of a group, and what the broker keeps for it, in a queue that keeps
        its groups apart.

        For a group that nobody serves any more: it is given a moment for that. What is delayed or
        suspect may stay. The group is there again as soon as somebody serves it or publishes to it.
        """
        ...

    def problems(self) -> Sequence[str]:
        """One sentence for each declared queue, and each group that is served, whose messages do
        not flow at the moment: it is missing, has no leader, or this broker's consumer of it does
        not consume it. Empty when all is well. Says what was seen last, and asks nobody.
        """
        ...

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        """One sentence for each of these queues, and those beside them, that is missing or has no
        leader, with what to do about it. Asks now, and declares nothing. Groups are left to
        `problems` of whoever serves them.
        """
        ...

    async def close(self) -> None:
        """Close every consumer and listener, and the connection. Calling it twice does nothing.

        Whoever waits for the broker, or asks for anything afterwards, gets BrokerClosed.
        """
        ...
