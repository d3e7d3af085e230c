"""The group queues of a queue with separate groups, as far as this process knows them.

AMQP cannot list queues, and this process keeps no list. The caller gives a consumer its groups;
the consumer also serves the groups that this process has published to. A publisher announces its
groups, so that the caller of a consumer that does not serve one lists the groups at once.
Publishers and consumers declare a group's queue before they use it; declaring an existing queue
does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from math import inf
from typing import Final

from socratic_bench.adapters.brokers.rabbitmq.connecting.reconnecting import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.declaring.declared import declare_group_queue
from socratic_bench.ports.broker import WorkQueue

ANNOUNCE_SECONDS: Final = 1.0
"""Seconds after which a publisher announces a group again: its consumers may have left it since."""


class GroupQueues:
    """The groups of one queue, and the queue of each."""

    def __init__(
        self, connection: ReconnectingConnection, queue: WorkQueue, declared: set[str]
    ) -> None:
        """`declared` collects the groups whose queues this process has declared."""
        self._connection = connection
        self._queue = queue
        self._declared = declared
        self._published: set[str] = set()
        self._announced_at: dict[str, float] = {}
        self._listeners: list[Callable[[], None]] = []
        self._ensuring = asyncio.Lock()

    @property
    def published(self) -> Collection[str]:
        """The groups that this process has published to."""
        return self._published

    @property
    def known(self) -> Collection[str]:
        """The groups whose queues this process has declared."""
        return self._declared

    def on_news(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` for each new group; returns a function that ends the calls."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def publish_to(self, groups: Collection[str]) -> None:
        """Declare the queues of these groups, and have this process serve them too.

        Raises BrokerUnavailable, BrokerClosed, and BrokerError if a group queue exists with other
        arguments.
        """
        if self._published.issuperset(groups):
            return
        await self.ensure(groups)
        self._published.update(groups)
        for listener in list(self._listeners):
            listener()

    def to_announce(self, groups: Collection[str]) -> list[str]:
        """Return those of these groups that this process did not announce lately; it does now."""
        now = asyncio.get_running_loop().time()
        due = [
            group
            for group in sorted(groups)
            if self._announced_at.get(group, -inf) <= now - ANNOUNCE_SECONDS
        ]
        self._announced_at.update(dict.fromkeys(due, now))
        return due

    def forget(self, group: str) -> None:
        """Forget a group: it was removed."""
        self._announced_at.pop(group, None)
        self._declared.discard(group)
        self._published.discard(group)

    async def ensure(self, groups: Collection[str]) -> None:
        """Declare the queues of these groups. Raises as `publish_to` does."""
        # One at a time: of two concurrent declarations the server answers one before the queue is
        # usable.
        async with self._ensuring:
            missing = set(groups) - self._declared
            if not missing:
                return
            async with self._connection.channel() as channel:
                for group in sorted(missing):
                    await self._connection.in_time(declare_group_queue(channel, self._queue, group))
                    self._declared.add(group)
