"""The dead letters of a queue: looked at, put back, thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.reconnecting import ReconnectingConnection
from socratic_bench.adapters.rabbitmq.routing import Routing
from socratic_bench.adapters.rabbitmq.settling import acknowledge
from socratic_bench.adapters.rabbitmq.wire import attempts_before, from_amqp, reason_of
from socratic_bench.ports.broker import DeadLetter, WorkQueue

BACK_SECONDS: Final = 10.0
"""How long letters that were looked at may take to be back in their queue."""

LOOK_AGAIN_SECONDS: Final = 0.01


class DeadLetters:
    """Of one queue. Every method raises BrokerUnavailable and BrokerClosed."""

    def __init__(
        self, connection: ReconnectingConnection, routing: Routing, queue: WorkQueue, label: str
    ) -> None:
        """`label` is the name of the queue as people know it."""
        self._connection = connection
        self._label = label
        self._name = topology.dead_letter_queue(queue.name)
        self._routing = routing

    async def depth(self) -> int:
        """How many messages of the server they are."""
        async with self._connection.channel() as channel:
            return await self._depth(channel)

    async def oldest(self, limit: int) -> list[DeadLetter]:
        """The oldest letters. They are taken and, when the channel closes, back in their place."""
        letters: list[DeadLetter] = []
        async with self._connection.channel() as channel:
            before = await self._depth(channel)
            # Nothing is taken from a queue that shows none: it may have no leader.
            while before and len(letters) < limit and (incoming := await self._get(channel)):
                letters += self._letters(incoming)
        if letters:
            await self._wait_until_back(before)
        return letters[:limit]

    async def _wait_until_back(self, before: int) -> None:
        """The server puts them back a moment after the channel has closed.

        Whoever redrives or looks at once would find nothing. Somebody else who takes letters at
        the same time makes this wait in vain.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(BACK_SECONDS), self._connection.channel() as channel:
                while await self._depth(channel) < before:  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def redrive(self, limit: int | None) -> int:
        """Put the oldest letters back as new messages, no more than there are now."""
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
        """Throw all letters away; returns how many messages of the server they were."""
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
        reason = reason_of(incoming) or "whoever put it there gave no reason"
        attempts = attempts_before(incoming)
        return [
            DeadLetter(message, self._label, reason, attempts) for message in from_amqp(incoming)
        ]
