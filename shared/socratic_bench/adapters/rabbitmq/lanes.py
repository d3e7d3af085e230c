"""The lanes of a queue that keeps its groups apart: which there are, for everybody to know.

AMQP has no way to ask which queues exist. So the name of each group is written into a stream that
everybody reads from its beginning and goes on reading: a consumer knows the groups there were
before it came, and hears of those that come later. A lane is declared before its group is written
down, and that comes before anything is published to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final
from uuid import uuid4

import structlog
from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.faults import despite_faults
from socratic_bench.adapters.rabbitmq.link import PATIENCE, Link, lost_event
from socratic_bench.adapters.rabbitmq.publisher import Outgoing, Publisher
from socratic_bench.errors import BrokerClosed, BrokerError, BrokerUnavailable
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

_MARKER: Final = "socratic-marker"
"""The header of an entry that is no group: whoever wrote it has read everything before it."""

_READ_AHEAD: Final = 500


class Lanes:
    """The groups of one queue, and the queue of each."""

    def __init__(self, link: Link, publisher: Publisher, queue: WorkQueue) -> None:
        self._link = link
        self._publisher = publisher
        self._queue = queue
        self._groups: set[str] = set()
        self._listeners: list[Callable[[], None]] = []
        self._markers: dict[str, asyncio.Event] = {}
        self._reader: asyncio.Task[None] | None = None
        self._read_up = asyncio.Lock()
        self._ensuring = asyncio.Lock()
        self._is_read_up = False
        self._reading = False

    async def known(self) -> Collection[str]:
        """Every group that was written down before this was asked for the first time, and since.

        Raises BrokerUnavailable and BrokerClosed.
        """
        async with self._read_up:
            if not self._is_read_up:
                await self._read_until_now()
                self._is_read_up = True
        return self._groups

    def on_news(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever there is a new group; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def ensure(self, groups: Collection[str]) -> None:
        """Make sure that these groups have their lanes. Raises BrokerUnavailable, BrokerClosed."""
        if self._groups.issuperset(groups):
            return
        await self.known()
        # One at a time: declared twice at once, a queue would be told to be there before it is.
        async with self._ensuring:
            missing = set(groups).difference(self._groups)
            if not missing:
                return
            async with self._link.channel() as channel:
                await self._link.in_time(self._declare(channel, missing))
            await self._publisher.publish([self._entry(group.encode(), {}) for group in missing])
            self._add(missing)

    async def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])

    async def _declare(self, channel: AbstractChannel, groups: Collection[str]) -> None:
        for group in sorted(groups):
            name = topology.lane(self._queue.name, group)
            lane = await channel.declare_queue(
                name, durable=True, arguments=topology.QUEUE_ARGUMENTS
            )
            await lane.bind(
                topology.lanes_exchange(self._queue.name),
                arguments={"x-match": "all", topology.GROUP_HEADER: group},
            )

    async def _read_until_now(self) -> None:
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name=f"lanes of {self._queue.name}")
        marker = uuid4().hex
        seen = self._markers[marker] = asyncio.Event()
        try:
            await self._publisher.publish([self._entry(b"", {_MARKER: marker})])
            async with asyncio.timeout(PATIENCE):
                await seen.wait()
        except TimeoutError as error:
            raise BrokerUnavailable(
                f"{self._link.name}: the groups of queue {self._queue.name!r} could not be read "
                f"within {PATIENCE:g} s; try again later"
            ) from error
        finally:
            del self._markers[marker]

    def _entry(self, body: bytes, headers: dict[str, str]) -> Outgoing:
        message = AmqpMessage(body, headers={**headers}, delivery_mode=DeliveryMode.PERSISTENT)
        return Outgoing("", topology.groups_stream(self._queue.name), message)

    async def _read(self) -> None:
        """Read the stream, from its beginning after every loss of the connection."""
        while True:
            try:
                async with self._link.channel() as channel:
                    lost = await lost_event(channel)
                    try:
                        await self._link.in_time(self._consume(channel))
                        await lost.wait()
                    finally:
                        # From here on nothing may be sent over this channel: it is being closed.
                        self._reading = False
            except BrokerClosed:
                return
            except Exception as error:
                # Whatever it is, nobody else would try again.
                bug = None if isinstance(error, BrokerError) else error
                log.warning(
                    "cannot read groups", queue=self._queue.name, reason=str(error), exc_info=bug
                )
                await asyncio.sleep(1)

    async def _consume(self, channel: AbstractChannel) -> None:
        self._reading = True
        await channel.set_qos(prefetch_count=_READ_AHEAD)
        stream = await channel.get_queue(topology.groups_stream(self._queue.name), ensure=False)
        await stream.consume(self._on_entry, arguments={"x-stream-offset": "first"})

    async def _on_entry(self, entry: AbstractIncomingMessage) -> None:
        marker = entry.headers.get(_MARKER)
        if marker is None:
            self._add({entry.body.decode(errors="replace")})
        elif seen := self._markers.get(str(marker)):
            seen.set()
        if self._reading:
            with despite_faults():
                await entry.ack()

    def _add(self, groups: Collection[str]) -> None:
        if not self._groups.issuperset(groups):
            self._groups.update(groups)
            for listener in list(self._listeners):
                listener()
