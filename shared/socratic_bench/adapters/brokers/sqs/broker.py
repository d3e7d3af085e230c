"""The broker on Amazon SQS."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import structlog

from socratic_bench.adapters.brokers.batches import SHARES, batches
from socratic_bench.adapters.brokers.declarations import (
    DELIVERY_LIMIT,
    Declarations,
    broker_closed,
    groups_together,
)
from socratic_bench.adapters.brokers.receiving import consumer_ended
from socratic_bench.adapters.brokers.sqs import topology
from socratic_bench.adapters.brokers.sqs.address import address_of
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.consumer import INVISIBLE_SECONDS, SqsConsumer
from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.dead_letters import SqsDeadLetters
from socratic_bench.adapters.brokers.sqs.intake import OrphanedPolls
from socratic_bench.adapters.brokers.sqs.listener import SqsListener
from socratic_bench.adapters.brokers.sqs.record_batch import RecordBatch
from socratic_bench.adapters.brokers.sqs.sender import Claims, OutgoingSend, Sender, SendTarget
from socratic_bench.adapters.brokers.sqs.server_queue import LONGEST_POLL
from socratic_bench.adapters.brokers.sqs.topology import Declared
from socratic_bench.adapters.brokers.sqs.wire import BATCH_BYTES
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import DeadLetter, WorkQueue

log = structlog.get_logger(__name__)

RESTORE_SECONDS: Final = 5.0
"""Seconds between two attempts to declare deleted queues again."""

BROADCAST_BATCH: Final = 200
"""The most broadcasts in one message of SNS."""


class SqsBroker:
    """Carries messages over SQS, and broadcasts over SNS; fulfils the broker port.

    It connects to nothing before its first use. Publishers try again for a while and then raise
    BrokerUnavailable; consumers and listeners wait for as long as it takes.
    """

    def __init__(
        self,
        url: str,
        *,
        delivery_limit: int = DELIVERY_LIMIT,
        invisible: float = INVISIBLE_SECONDS,
        poll_seconds: int = LONGEST_POLL,
    ) -> None:
        """Describe the broker at `sqs://region/namespace?endpoint=url&bucket=name`.

        The namespace prefixes every name, so that several stages can share an account. Messages of
        a consumer that died are delivered again after `invisible` seconds. A poll of an empty queue
        takes `poll_seconds`; where they are fewer than usual, a consumer's end waits for its poll.

        Raises InvalidSettings if `url` is not such an address.
        """
        self._connection = AwsConnection(address_of(url))
        self._sender = Sender(self._connection)
        self._claims = Claims(self._connection)
        self._delivery_limit = delivery_limit
        self._invisible = invisible
        self._poll_seconds = poll_seconds
        self._declared: Declarations[Declared] = Declarations()
        self._missing: set[str] = set()
        """Queues that a caller inspected, and that were not there."""
        self._topics: dict[str, str] = {}
        self._consumers: dict[SqsConsumer, str] = {}
        self._listeners: set[SqsListener] = set()
        self._publishing: set[asyncio.Task[None]] = set()
        self._orphans = OrphanedPolls()
        self._receipts = count(1)
        self._connection.on_missing = self._begin_restoring
        self._restoring: asyncio.Task[None] | None = None

    @property
    def requests(self) -> dict[str, int]:
        """How many requests were made, by operation."""
        return dict(self._connection.requests)

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        self._connection.check_open()
        for queue in queues:
            if self._declared.is_new(queue):
                self._add(queue, await topology.find_or_create(self._connection, queue))
        for event_type in broadcasts:
            if event_type not in self._topics:
                self._topics[event_type] = await topology.topic_of(self._connection, event_type)
                self._declared.broadcasts.add(event_type)

    async def publish(self, messages: Sequence[Message]) -> None:
        self._connection.check_open()
        self._declared.check_routable(messages)
        # A cancelled caller must not stop a publish halfway, with a message in one of its queues.
        publishing = asyncio.create_task(self._publish(messages))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._published)
        await asyncio.shield(publishing)

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[SqsConsumer]:
        declared = self._queue(queue)
        consumer = SqsConsumer(
            declared.work,
            declared.queue,
            self._copies(declared),
            self._claims,
            self._orphans,
            self._receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=self._delivery_limit,
            invisible=self._invisible,
            poll_seconds=self._poll_seconds,
        )
        self._consumers[consumer] = queue
        try:
            yield consumer
        finally:
            self._consumers.pop(consumer, None)
            await consumer.end(consumer_ended(queue))
            if self._poll_seconds < LONGEST_POLL:
                await self._orphans.ended()

    def records(self, queue: str) -> RecordBatch:
        """Return what takes and settles the records of one Lambda event of a declared queue."""
        declared = self._queue(queue)
        return RecordBatch(
            declared.queue,
            self._copies(declared),
            self._claims,
            self._receipts,
            delivery_limit=self._delivery_limit,
        )

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[SqsListener]:
        self._connection.check_open()
        topics = [self._topics[each] for each in self._declared.broadcasts_among(event_types)]
        listener = SqsListener(self._connection, self._claims, topics)
        await listener.open()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            await listener.end(closed=False)

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int | None:
        """Count the messages of SQS that are visible or delayed. None for a group: SQS cannot tell.

        AWS calls its counts approximate; they may lag behind by a minute.
        """
        declared = self._queue(queue)
        return await declared.queue.depth() if group is None else None

    async def dead_letter_depth(self, queue: str) -> int:
        return 0 if queue in self._missing else await self._dead_letters(queue).depth()

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        return [] if queue in self._missing else await self._dead_letters(queue).oldest(limit)

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        return await self._dead_letters(queue).redrive(limit)

    async def purge_dead_letters(self, queue: str) -> int:
        return await self._dead_letters(queue).purge()

    async def remove_group(self, queue: str, group: str) -> None:
        declared = self._queue(queue)
        if not declared.work.separate_groups:
            raise groups_together(queue)
        await self._copies(declared).delete_group(group)

    async def ping(self) -> None:
        known = [declared.queue.name for declared in self._declared.queues()]
        # That there is no such queue is an answer as well.
        name = known[0] if known else self._connection.address.named("ping")
        await topology.find(self._connection, name)

    def problems(self) -> Sequence[str]:
        return [
            f"queue {queue!r} cannot be consumed: {consumer.trouble}"
            for consumer, queue in self._consumers.items()
            if consumer.trouble is not None
        ]

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        queues = list(queues)
        for queue in queues:
            if not self._declared.is_new(queue):
                continue
            if found := await topology.look_for(self._connection, queue):
                self._add(queue, found)
            else:
                self._missing.add(queue.name)
        return await topology.inspect(self._connection, queues)

    async def close(self) -> None:
        error = broker_closed()
        for consumer in list(self._consumers):
            await consumer.end(error)
        for listener in list(self._listeners):
            await listener.end(closed=True)
        await self._orphans.close()
        if self._restoring is not None:
            await cancelled(self._restoring)
        for publishing in self._publishing:
            publishing.cancel()
        if self._publishing:
            await asyncio.wait(self._publishing)
        await self._connection.close()

    async def _publish(self, messages: Sequence[Message]) -> None:
        by_type: defaultdict[str, list[Message]] = defaultdict(list)
        for message in messages:
            by_type[message.type].append(message)
        outgoing: list[OutgoingSend] = []
        for event_type, together in by_type.items():
            for taker in self._declared.takers(event_type):
                outgoing += await self._to_queue(taker, together)
            if event_type in self._topics:
                outgoing += await self._to_topic(self._topics[event_type], together)
        await self._sender.send(outgoing)

    async def _to_queue(self, taker: Declared, messages: Sequence[Message]) -> list[OutgoingSend]:
        work = taker.work
        target = SendTarget(taker.queue.url, separate_groups=work.separate_groups)
        outgoing: list[OutgoingSend] = []
        for together in _by_group(messages) if work.separate_groups else [messages]:
            shares = SHARES if work.separate_groups else 1
            outgoing += [
                OutgoingSend(target, await self._sender.encoded(batch))
                for batch in batches(together, work.batch, most_bytes=BATCH_BYTES, shares=shares)
            ]
        return outgoing

    async def _to_topic(self, topic: str, messages: Sequence[Message]) -> list[OutgoingSend]:
        target = SendTarget(topic, is_topic=True)
        return [
            OutgoingSend(target, await self._sender.encoded(batch, for_topic=True))
            for batch in batches(messages, BROADCAST_BATCH, most_bytes=BATCH_BYTES)
        ]

    def _begin_restoring(self, url: str) -> None:
        """Declare the queues of this process again, unless that is under way."""
        mine = {each.url for declared in self._declared.queues() for each in declared[1:]}
        if url in mine and (self._restoring is None or self._restoring.done()):
            self._restoring = asyncio.create_task(self._restore(), name="restoring queues")

    async def _restore(self) -> None:
        try:
            for declared in list(self._declared.queues()):
                await topology.find_or_create(self._connection, declared.work)
        except BrokerClosed:
            return
        except BrokerError as error:
            log.warning("not declared again", reason=str(error))
        await asyncio.sleep(RESTORE_SECONDS)

    def _published(self, publishing: asyncio.Task[None]) -> None:
        self._publishing.discard(publishing)
        if not publishing.cancelled():
            publishing.exception()

    def _add(self, queue: WorkQueue, found: Declared) -> None:
        self._missing.discard(queue.name)
        self._declared.add(queue, found)

    def _queue(self, name: str) -> Declared:
        self._connection.check_open()
        return self._declared.queue(name)

    def _copies(self, declared: Declared) -> Copies:
        return Copies(self._sender, declared.work, declared.queue, declared.dead)

    def _dead_letters(self, queue: str) -> SqsDeadLetters:
        declared = self._queue(queue)
        return SqsDeadLetters(declared.dead, self._copies(declared), self._claims, queue)


def _by_group(messages: Iterable[Message]) -> Iterable[list[Message]]:
    groups: defaultdict[str, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.group].append(message)
    return groups.values()
