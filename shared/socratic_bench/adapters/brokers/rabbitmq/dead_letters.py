"""The dead letters of a queue: list, redrive, purge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.settling import acknowledge
from socratic_bench.adapters.brokers.rabbitmq.wire import (
    attempts_before,
    from_amqp,
    reason_of,
)
from socratic_bench.ports.broker import DeadLetter, WorkQueue

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
        """Return the oldest letters. They return to their queue when the channel closes."""
        letters: list[DeadLetter] = []
        async with self._connection.channel() as channel:
            before = await self._depth(channel)
            # An empty queue may have no leader, and a get from such a queue ends the connection.
            while before and len(letters) < limit and (incoming := await self._get(channel)):
                letters += self._letters(incoming)
        if letters:
            await self._wait_until_back(before)
        return letters[:limit]

    async def _wait_until_back(self, before: int) -> None:
        """Wait until the server has put the letters back, a moment after the channel has closed.

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
        queue = await self._connection.in_time(channel.get_queue(self._name))
        return queue.declaration_result.message_count or 0

    def _letters(self, incoming: AbstractIncomingMessage) -> Sequence[DeadLetter]:
        reason = reason_of(incoming) or "its publisher gave no reason"
        attempts = attempts_before(incoming)
        return [
            DeadLetter(message, self._label, reason, attempts) for message in from_amqp(incoming)
        ]
