"""The halves of a consumer and of a listener that no server changes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Generic, Self

from socratic_bench.adapters.brokers.declarations import attempts_of_copy
from socratic_bench.adapters.brokers.unacked import (
    BatchPart,
    Incoming,
    UnackedMessages,
    lost_delivery,
)
from socratic_bench.concurrency.waiting_line import WaitingLine
from socratic_bench.errors import BrokerClosed, BrokerError, InvalidInput
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Delivery, WorkQueue

LISTENER_BUFFER: Final = 1_000
"""The newest broadcasts that a slow listener keeps."""


class QueueConsumer(ABC):
    """Receives, retries and ends as the port has it; an adapter says how it takes and copies."""

    def __init__(
        self,
        queue: str,
        receivers: WaitingLine,
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
    ) -> None:
        """`receivers` are woken when there may be something to take."""
        if prefetch < 1 or (prefetch_per_group is not None and prefetch_per_group < 1):
            raise InvalidInput(
                f"consumer of queue {queue!r}: a prefetch of {prefetch}, {prefetch_per_group} "
                "per group, would never receive anything; give 1 or more"
            )
        self._name = queue
        self._receivers = receivers
        self._delivery_limit = delivery_limit
        self._draining = False
        self._ended: BrokerError | None = None

    def serve(self, groups: Collection[str]) -> None:  # noqa: B027 - most brokers need no groups
        """Do nothing: the consumer serves every group of the queue."""

    async def heard_of_group(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def receive(self, limit: int) -> Sequence[Delivery]:
        # A queue that is never empty must leave room for other tasks on the event loop.
        await asyncio.sleep(0)
        while True:
            if self._ended:
                raise self._ended
            if self._draining:
                return []
            if taken := self._take(limit):
                return taken
            await self._receivers.wait()

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        attempts = attempts_of_copy(delivery, self._delivery_limit, counted=counted)
        if attempts is None:
            await self.reject(delivery, reason)
        else:
            await self._deliver_again(delivery, attempts, delay)

    @abstractmethod
    async def reject(self, delivery: Delivery, reason: str) -> None: ...

    def drain(self) -> None:
        self._draining = True
        self._receivers.wake_all()

    @abstractmethod
    def _take(self, limit: int) -> Sequence[Delivery]:
        """Hand out what is there within the prefetch, perhaps nothing."""

    @abstractmethod
    async def _deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        """Settle a delivery by a copy with so many counted retries, due after a delay."""

    def _end(self, error: BrokerError) -> None:
        """Have later calls for messages raise `error`."""
        if self._ended is None or isinstance(error, BrokerClosed):
            self._ended = error
        self._receivers.wake_all()

    def _not_in_hand(self, message_id: str, count: int = 1) -> BrokerError:
        if isinstance(self._ended, BrokerClosed):
            return self._ended
        return lost_delivery(self._name, message_id, count)


class UnackedConsumer(QueueConsumer, Generic[Incoming]):
    """A consumer of a server that carries several messages as one."""

    def __init__(
        self,
        queue: WorkQueue,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
    ) -> None:
        self._unacked: UnackedMessages[Incoming] = UnackedMessages(
            queue.name,
            receipts,
            separate_groups=queue.separate_groups,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
        )
        super().__init__(
            queue.name,
            self._unacked.receivers,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=delivery_limit,
        )

    def _part(self, delivery: Delivery) -> BatchPart[Incoming]:
        """Return the part behind a delivery in hand. Raises DeliveryLost, or BrokerClosed."""
        part = self._unacked.part(delivery)
        if part is None:
            raise self._not_in_hand(delivery.message.id)
        return part


def consumer_ended(queue: str) -> BrokerError:
    """Return the error of calls to a consumer whose context has ended."""
    return BrokerError(f"queue {queue!r}: this consumer has ended; open another one")


def consumer_broke(queue: str, error: Exception) -> BrokerError:
    """Return the error of calls to a consumer that a bug has ended."""
    return BrokerError(f"queue {queue!r}: its consumer broke: {error}")


class BroadcastListener:
    """Keeps the newest messages until the caller takes them."""

    def __init__(self, buffer: int = LISTENER_BUFFER) -> None:
        self._heard: deque[Message] = deque(maxlen=buffer)
        self._waiting = WaitingLine()
        self._ended = False
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._heard:
            if self._closed:
                raise BrokerClosed("the broker this listener belongs to was closed")
            if self._ended:
                raise StopAsyncIteration
            await self._waiting.wait()
        return self._heard.popleft()

    def hear(self, messages: Iterable[Message]) -> None:
        """Add these messages, without waiting."""
        self._heard.extend(messages)
        self._waiting.wake_all()

    def stop(self, *, closed: bool) -> None:
        """Have the iteration end: the context ended, or the broker was closed."""
        self._ended = True
        self._closed = self._closed or closed
        self._waiting.wake_all()
