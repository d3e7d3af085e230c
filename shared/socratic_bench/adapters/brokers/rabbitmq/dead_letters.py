"""The dead letters of a queue: list, redrive, purge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.health import seen
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.settling import acknowledge, give_back_all
from socratic_bench.adapters.brokers.rabbitmq.wire import (
    attempts_before,
    from_amqp,
    reason_of,
)
from socratic_bench.ports.broker import DeadLetter, WorkQueue

COUNTS_NO_RETURN: Final = (4, 3)
"""The RabbitMQ from which on a `nack` does not count towards a delivery limit."""

MOST_IN_ORDER: Final = 1_000
"""The most letters of a queue that a look may copy: of more it copies those that it returns."""

AT_ONCE: Final = 50
"""The letters that a look takes before it settles them."""

BACK_SECONDS: Final = 10.0
"""Seconds that listed letters have to be back in their queue."""

LOOK_AGAIN_SECONDS: Final = 0.01


class RabbitDeadLetters:
    """The dead letters of one queue. Every method raises BrokerUnavailable and BrokerClosed."""

    def __init__(
        self, connection: ReconnectingConnection, routing: Routing, queue: WorkQueue, label: str
    ) -> None:
        """`label` is the queue's name without the namespace."""
        self._connection = connection
        self._label = label
        self._name = topology.dead_letter_queue(queue.name)
        self._routing = routing

    async def depth(self) -> int:
        """Count the messages of the server that hold the letters."""
        async with self._connection.channel() as channel:
            return await self._depth(channel)

    async def oldest(self, limit: int) -> list[DeadLetter]:
        """Return the oldest letters; of more than MOST_IN_ORDER the next ones at each look.

        A policy with a delivery limit lets the server drop a letter that came back too often.
        RabbitMQ does not count an orderly return from COUNTS_NO_RETURN on. For an older one a copy
        at the end of the queue replaces each letter; all are copied, so that they keep their order.
        """
        letters: list[DeadLetter] = []
        async with self._connection.channel() as channel:
            # An empty queue may have no leader, and a get from such a queue ends the connection.
            left = before = await self._depth(channel)
            copies = await self._connection.server_version() < COUNTS_NO_RETURN
            if copies and before:
                await self._routing.check_permission()
            in_order = copies and before <= MOST_IN_ORDER
            while left and (in_order or len(letters) < limit):
                taken = await self._get_some(channel, left if in_order else limit - len(letters))
                if not taken:
                    break
                left -= len(taken)
                for incoming in taken[: max(0, limit - len(letters))]:
                    letters += self._letters(incoming)
                if copies:
                    await self._routing.copy_dead_letters(taken)
                    await self._connection.in_time(acknowledge(taken[-1], earlier_too=True))
            if letters and not copies:
                await self._connection.in_time(give_back_all(channel))
        if letters and not copies:
            await self._wait_until_back(before)
        return letters[:limit]

    async def _get_some(self, channel: AbstractChannel, most: int) -> list[AbstractIncomingMessage]:
        """Take letters that the server keeps until they are settled, `most` at most."""
        taken: list[AbstractIncomingMessage] = []
        while len(taken) < min(most, AT_ONCE) and (incoming := await self._get(channel)):
            taken.append(incoming)
        return taken

    async def _wait_until_back(self, before: int) -> None:
        """Wait until the server has put the letters back.

        A redrive or a second list at once would find an empty queue. If another process takes
        letters at the same time, the wait ends at its deadline.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(BACK_SECONDS), self._connection.channel() as channel:
                while await self._depth(channel) < before:  # noqa: ASYNC110 - the server signals no change
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def redrive(self, limit: int | None) -> int:
        """Publish the oldest letters as new messages, at most as many as the queue holds now."""
        count = 0
        async with self._connection.channel() as channel:
            left = await self._depth(channel)
            while left and (limit is None or count < limit):
                incoming = await self._get(channel)
                if incoming is None:
                    break
                letters = self._letters(incoming)
                wanted = letters if limit is None else letters[: limit - count]
                for letter in wanted:
                    await self._routing.republish([letter.message], attempts=0)
                for letter in letters[len(wanted) :]:  # the rest of a batch
                    await self._routing.dead_letter(
                        [letter.message], letter.attempts, letter.reason
                    )
                await self._connection.in_time(acknowledge(incoming))
                count += len(wanted)
                left -= 1
        return count

    async def purge(self) -> int:
        """Delete all letters; returns how many messages of the server held them."""
        async with self._connection.channel() as channel:
            if not await self._depth(channel):
                return 0
            queue = await channel.get_queue(self._name, ensure=False)
            result = await self._connection.in_time(queue.purge())
        return result.message_count or 0

    async def _get(self, channel: AbstractChannel) -> AbstractIncomingMessage | None:
        queue = await channel.get_queue(self._name, ensure=False)
        return await self._connection.in_time(queue.get(fail=False))

    async def _depth(self, channel: AbstractChannel) -> int:
        """Count the waiting letters; 0 for a missing queue: the server then closes the channel."""
        found = await self._connection.in_time(seen(channel, self._name))
        return 0 if found is None else found.messages

    def _letters(self, incoming: AbstractIncomingMessage) -> Sequence[DeadLetter]:
        reason = reason_of(incoming) or "its publisher gave no reason"
        attempts = attempts_before(incoming)
        return [
            DeadLetter(message, self._label, reason, attempts) for message in from_amqp(incoming)
        ]
