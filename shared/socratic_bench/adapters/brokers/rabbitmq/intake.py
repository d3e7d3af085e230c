"""Receives a consumer's messages over a channel, and opens a new channel after each loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final

import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from pamqp.commands import Basic

from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    ReconnectingConnection,
    closed_event,
)
from socratic_bench.adapters.brokers.rabbitmq.declaring import GroupQueues, declare_events
from socratic_bench.adapters.brokers.rabbitmq.health import QueueReport
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.settling import Settling
from socratic_bench.adapters.brokers.rabbitmq.sources import (
    Sources,
    Widths,
    batches_ahead,
    batches_ahead_of_a_group,
)
from socratic_bench.adapters.brokers.rabbitmq.wire import (
    announced,
    attempts_before,
    deaths_of,
    from_amqp,
    redeliveries_of,
)
from socratic_bench.adapters.brokers.receiving import consumer_broke
from socratic_bench.adapters.brokers.unacked import Batch, BatchPart, UnackedMessages
from socratic_bench.concurrency.deadlines import cancelled, wait_at_most
from socratic_bench.errors import BrokerClosed, BrokerError, DeliveryLost
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue, alone_for, ended_alone

log = structlog.get_logger(__name__)

_TIMED_OUT: Final = re.compile(r"acknowledgement on channel .*?value used: (\d+) ms")
"""RabbitMQ's words at a consumer time-out, before 4.3."""

SHORTEST_HOLD: Final = 0.5
"""Seconds that a consumer holds a message at least, however short the server's time-out is."""

AILING_SECONDS: Final = 5.0
"""Seconds between two attempts to consume an unavailable queue."""

GIVE_BACK_SECONDS: Final = 5.0
"""Seconds that a stopping consumer has to publish copies of messages that it never handed out."""


class HoldTime:
    """How long a consumer holds a message before a copy replaces it."""

    def __init__(self, queue: str, seconds: float) -> None:
        self._queue = queue
        self.seconds = seconds

    def on_close(self, _: object, error: BaseException | None) -> None:
        """Note a consumer time-out for which the server closed a channel."""
        if timeout := _TIMED_OUT.search(str(error)):
            self.timed_out(str(error), int(timeout[1]) / 1000)

    def timed_out(self, words: str, timeout: float) -> None:
        """Hold messages for half the server's time-out: it counts every one that timed out."""
        self.seconds = min(self.seconds, max(SHORTEST_HOLD, timeout / 2))
        log.warning(
            "consumer timed out",
            queue=self._queue,
            reason=f"{words}; a policy or setting `consumer-timeout` is shorter than the work: "
            f"raise it; until then copies replace messages in hand after {self.seconds:.3g} s",
        )


class QueueIntake:
    """Receives the messages of a queue, or of all its group queues, and of its suspects."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        routing: Routing,
        queue: WorkQueue,
        group_queues: GroupQueues | None,
        unacked: UnackedMessages[AbstractIncomingMessage],
        settling: Settling,
        *,
        prefetch: int,
        per_group: int,
        hold: HoldTime,
        on_broken: Callable[[BrokerError], None],
    ) -> None:
        """`on_broken` hears of the error that ends the intake for good, if any."""
        self._connection = connection
        self._routing = routing
        self._queue = queue
        self._group_queues = group_queues
        self._sources = Sources(connection, queue, group_queues)
        self._unacked = unacked
        self._settling = settling
        size = queue.batch
        self._widths = (
            Widths(batches_ahead(prefetch, size))
            if group_queues is None
            else Widths(batches_ahead_of_a_group(per_group, size), per_group)
        )
        self._limit = 0
        """Prefetch, in batches, that the channel gives the next queue; 0 means no limit."""
        self._hold = hold
        self._cancelled: set[str] = set()
        """The queues whose consumer the server cancelled."""
        self.complete = False
        """Whether every existing queue is consumed. Until then the consumer hands out nothing: it
        would serve the first group alone."""
        self._on_broken = on_broken
        self._draining = False
        self._changed = asyncio.Event()
        self._taking = False
        self._stalled: list[str] = []
        """The queues that need another channel."""
        self._arrived: set[str] = set()
        """The queues that delivered since the last look at the server."""
        self._spared: set[str] = set()
        """The suspects that the server counts as redelivered although no handler began them."""
        self._stopped = asyncio.Event()
        self._group_news = asyncio.Event()
        self._running = asyncio.create_task(self._run(), name=f"consumer of {queue.name}")

    def drain(self) -> None:
        """Stop receiving, and return messages that were not handed out to the queue."""
        self._draining = True
        self._changed.set()

    def serve(self, groups: Collection[str]) -> None:
        """Consume the queues of these groups."""
        self._sources.serve(groups)
        if self._sources.wanted().keys() != self._sources.consumed.keys():
            self._changed.set()

    async def heard_of_group(self) -> None:
        """Wait for the announcement of a group that is not served."""
        await self._group_news.wait()
        self._group_news.clear()

    def look_after_suspect(self) -> None:
        """Note that a suspect was handed out: its time alone begins."""
        self._changed.set()

    def compare(self, found: Mapping[str, QueueReport | None]) -> None:
        """Consume the queues again for which the server shows no consumer, and use another channel
        for queues whose messages never arrive.
        """
        if self._sources.compare(found):
            self._changed.set()
        unacked, arrived = self._unacked_tags(), self._arrived
        self._arrived = set()
        if not self._taking or self._draining:
            return
        consumed = self._sources.consumed.items()
        served = arrived.union(name for name, tags in consumed if not unacked.isdisjoint(tags))
        self._stalled = self._sources.stalled(found, served)
        if self._stalled:
            self._changed.set()

    def problems(self) -> dict[str, str]:
        """Problems of the intake's queues, by name; none while it drains."""
        return {} if self._draining else self._sources.problems()

    async def end(self) -> None:
        """Return everything to the queue; messages that were not handed out count no delivery."""
        self.drain()
        try:
            if self._taking:
                await wait_at_most(GIVE_BACK_SECONDS, self._stopped)
        finally:
            await cancelled(self._running)
            self._unacked.lose_all()

    async def _run(self) -> None:
        while True:
            try:
                async with self._connection.channel() as channel:
                    try:
                        await self._consume_until_lost(channel)
                    finally:
                        # The channel is closing: nothing may be sent over it from here on.
                        self.complete = self._taking = False
                        self._sources.forget_all()
                        self._stopped.set()
                        self._settling.forget_all()
                        self._spared = self._unacked.lose_all()
            except BrokerClosed:
                return
            except BrokerError as error:
                self._sources.trouble = str(error)
                log.warning("cannot consume", queue=self._queue.name, reason=str(error))
                await asyncio.sleep(1)
            except Exception as error:
                # Without this, callers that wait for messages would wait for ever.
                log.exception("consumer broke", queue=self._queue.name)
                self._on_broken(consumer_broke(self._queue.name, error))
                return

    async def _consume_until_lost(self, channel: AbstractChannel) -> None:
        """Consume every queue that exists, and group queues as they appear."""
        lost = closed_event(channel, self._changed)
        channel.close_callbacks.add(self._hold.on_close)
        self._cancelled.clear()
        (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(self._on_cancel)
        self._stopped.clear()
        self._stalled = []
        self._limit = 0
        self._taking = True
        forget = self._group_queues.on_news(self._changed.set) if self._group_queues else None
        try:
            if self._group_queues is not None:
                await self._connection.in_time(self._hear_announcements(channel))
            while not lost.is_set():
                self._changed.clear()
                if self._draining:
                    await self._stop_taking(channel)
                    self._stopped.set()
                    await lost.wait()
                    return
                if await self._timed_out():
                    return
                if self._stalled:
                    log.warning("no deliveries, consuming again", queues=self._stalled)
                    return
                await self._consume_what_is_ready(channel)
                await self._consume_more(channel)
                if not self.complete:
                    self.complete = True
                    self._sources.trouble = ""
                    self._unacked.receivers.wake_all()
                await self._give_up_long_held()
                await wait_at_most(self._pause(), self._changed)
        finally:
            if forget is not None:
                forget()

    async def _consume_what_is_ready(self, channel: AbstractChannel) -> None:
        sources = self._sources
        for name in sources.consumed.keys() - sources.wanted().keys():
            await self._cancel(channel, name)
        sources.forget_groups()
        for name in await sources.ready():
            await self._consume(channel, name, self._widths.begin(name))

    async def _hear_announcements(self, channel: AbstractChannel) -> None:
        """Hear of the groups that other processes publish to, as long as the channel is open."""
        events = topology.events_exchange(self._connection.namespace)
        await declare_events(channel, events)
        queue = await channel.declare_queue(
            exclusive=True, auto_delete=True, arguments=topology.LISTENER_ARGUMENTS
        )
        await queue.bind(events, routing_key=topology.announcements(self._queue.name))
        await queue.consume(self._on_announcement, no_ack=True)

    async def _on_announcement(self, incoming: AbstractIncomingMessage) -> None:
        self._settling.saw(incoming)
        if not self._sources.all_served(announced(incoming)):
            self._group_news.set()

    async def _consume_more(self, channel: AbstractChannel) -> None:
        """Widen the prefetch of queues that are rarely redelivered, and receive another suspect
        once those in hand had their time alone.
        """
        consumed, suspects = self._sources.consumed, self._sources.suspects
        for name, batches in self._widths.take_more().items():
            if name in consumed:
                await self._consume(channel, name, batches)
        if self._unacked.clear(asyncio.get_running_loop().time()) and suspects in consumed:
            # The suspect in hand fills the consumer's prefetch; a new consumer has room again.
            await self._cancel(channel, suspects)
            await self._consume(channel, suspects, 1)

    async def _consume(self, channel: AbstractChannel, name: str, batches: int) -> None:
        """Consume a queue with a prefetch of `batches`, in addition to earlier consumers of it."""
        queue = await channel.get_queue(name, ensure=False)
        take = (
            self._on_suspect if name == self._sources.suspects else partial(self._on_message, name)
        )
        try:
            # AMQP applies a prefetch to the consumers that begin after it was set.
            if batches != self._limit:
                await self._connection.in_time(channel.set_qos(prefetch_count=batches))
                self._limit = batches
            tag = await self._connection.in_time(queue.consume(take))
        except BrokerError:
            self._sources.miss(name)
            raise
        self._sources.consumed.setdefault(name, []).append(tag)

    async def _cancel(self, channel: AbstractChannel, name: str) -> None:
        queue = await channel.get_queue(name, ensure=False)
        self._widths.forget(name)
        for tag in self._sources.consumed.pop(name):
            await self._connection.in_time(queue.cancel(tag))

    def _on_cancel(self, frame: Basic.Cancel) -> None:
        self._cancelled.update(self._sources.lose(frame.consumer_tag))
        self._changed.set()

    async def _timed_out(self) -> bool:
        """Tell whether the server cancelled a consumer although its queue is still there.

        RabbitMQ 4.3 does so at a consumer time-out, and goes on counting that consumer until the
        channel closes. Earlier versions close the channel.
        """
        cancelled, self._cancelled = self._cancelled, set()
        found = await health.look(self._connection, cancelled) if cancelled else {}
        # A queue that was deleted and declared again has no consumer yet.
        there = sorted(name for name, report in found.items() if report and report.consumers)
        if there:
            now = asyncio.get_running_loop().time()
            held = max((now - batch.arrived for batch in self._unacked.batches), default=0.0)
            self._hold.timed_out(f"the server cancelled the consumer of {', '.join(there)}", held)
        return bool(there)

    def _unacked_tags(self) -> set[str]:
        """Return the tags of the channel's consumers that have unacked messages."""
        return {batch.incoming.consumer_tag or "" for batch in self._unacked.batches}

    def _pause(self) -> float:
        """Seconds until the next periodic task is due."""
        alone = self._unacked.seclusion.until - asyncio.get_running_loop().time()
        ailing = AILING_SECONDS if self._sources.ailing else inf
        return max(0.0, min(self._hold.seconds / 4, ailing, alone))

    async def _on_message(self, name: str, incoming: AbstractIncomingMessage) -> None:
        if not self._taking:
            return
        self._arrived.add(name)
        messages, attempts = from_amqp(incoming), attempts_before(incoming)
        now = asyncio.get_running_loop().time()
        if self._widths.saw(name, redeliveries_of(incoming), len(messages)):
            self._changed.set()
        if redeliveries_of(incoming) < SUSPECT_AFTER:
            self._settling.arrived(self._unacked.arrive(incoming, messages, attempts + 1, now))
            return
        await self._move(incoming, now, self._routing.to_suspects(messages, attempts))

    async def _on_suspect(self, incoming: AbstractIncomingMessage) -> None:
        if not self._taking:
            return
        self._arrived.add(self._sources.suspects)
        messages, attempts = from_amqp(incoming), attempts_before(incoming)
        deaths = deaths_of(incoming)
        now = asyncio.get_running_loop().time()
        if messages[0].id in self._spared and redeliveries_of(incoming):
            self._spared.discard(messages[0].id)
            elsewhere = self._routing.to_suspects(messages, attempts, deaths - 1)
        elif deaths >= SUSPECT_AFTER:
            elsewhere = self._routing.dead_letter(messages, attempts + 1, ended_alone(deaths))
        else:
            alone = alone_for(deaths)
            suspect = self._unacked.suspect(incoming, messages, attempts + 1, now, alone)
            self._settling.arrived(suspect)
            return
        await self._move(incoming, now, elsewhere)

    async def _move(
        self, incoming: AbstractIncomingMessage, now: float, publishing: Awaitable[None]
    ) -> None:
        batch = self._unacked.keep(incoming, now)
        self._settling.arrived(batch)
        await self._settling.move(batch, publishing)

    async def _stop_taking(self, channel: AbstractChannel) -> None:
        """Return the messages that were not handed out, as copies.

        The server would count messages that it takes back itself as redelivered.
        """
        for name in list(self._sources.consumed):
            await self._cancel(channel, name)
        taken_back = self._unacked.take_back()
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self._publish_back(taken_back)
        except (BrokerError, TimeoutError):
            for batch, _ in taken_back:
                batch.to_return = True
        given_back = [batch for batch, parts in taken_back if self._unacked.gave_back(batch, parts)]
        with suppress(DeliveryLost):
            await self._settling.finish(given_back)

    async def _publish_back(
        self,
        taken_back: Iterable[
            tuple[Batch[AbstractIncomingMessage], Sequence[BatchPart[AbstractIncomingMessage]]]
        ],
    ) -> None:
        normal: list[tuple[list[Message], int]] = []
        for batch, parts in taken_back:
            messages = [part.delivery.message for part in parts]
            attempts = attempts_before(batch.incoming)
            if batch.suspect:
                await self._routing.to_suspects(messages, attempts, deaths_of(batch.incoming))
            else:
                normal.append((messages, attempts))
        await self._routing.republish_batches(normal)

    async def _give_up_long_held(self) -> None:
        """Publish delayed copies of messages that were held for too long.

        A handler at work on one goes on; its copy will find the work done.
        """
        then = asyncio.get_running_loop().time() - self._hold.seconds
        for batch, in_hand, waited in self._unacked.give_up_since(then):
            attempts = attempts_before(batch.incoming)
            if in_hand:
                copies = [part.delivery.message for part in in_hand]
                await self._routing.republish(copies, attempts, self._hold.seconds)
            if waited:
                copies = [part.delivery.message for part in waited]
                if batch.suspect:
                    await self._routing.to_suspects(copies, attempts, deaths_of(batch.incoming))
                else:
                    await self._routing.republish(copies, attempts)
            # If the acknowledgement cannot be sent, the loss of the channel settles the message.
            await self._connection.in_time(self._settling.acknowledge(batch))
