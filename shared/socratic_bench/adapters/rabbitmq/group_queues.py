"""The group queues of a queue that keeps its groups apart, as far as this process knows them.

AMQP has no way to ask which queues exist, and nobody writes it down here. A consumer is told by its
caller which groups there are, and besides serves those this process has published to. Whoever
publishes to a group or consumes it declares its queue first, which does nothing if it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from socratic_bench.adapters.rabbitmq.declaring import declare_group_queue
from socratic_bench.adapters.rabbitmq.reconnecting import ReconnectingConnection
from socratic_bench.ports.broker import WorkQueue


class GroupQueues:
    """The groups of one queue, and the queue of each."""

    def __init__(
        self, connection: ReconnectingConnection, queue: WorkQueue, declared: set[str]
    ) -> None:
        """`declared` are the groups whose group queues this process has declared; filled here."""
        self._connection = connection
        self._queue = queue
        self._declared = declared
        self._published: set[str] = set()
        self._listeners: list[Callable[[], None]] = []
        self._ensuring = asyncio.Lock()

    @property
    def published(self) -> Collection[str]:
        """The groups this process has published to."""
        return self._published

    @property
    def known(self) -> Collection[str]:
        """The groups whose group queues this process has declared."""
        return self._declared

    def on_news(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever there is a group to be served; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def publish_to(self, groups: Collection[str]) -> None:
        """Make sure that these groups have their group queues, and are served by this process too.

        Raises BrokerUnavailable, BrokerClosed, and BrokerError for a group queue that is different.
        """
        if self._published.issuperset(groups):
            return
        await self.ensure(groups)
        self._published.update(groups)
        for listener in list(self._listeners):
            listener()

    def forget(self, group: str) -> None:
        """Have nothing to do with a group any more."""
        self._declared.discard(group)
        self._published.discard(group)

    async def ensure(self, groups: Collection[str]) -> None:
        """Make sure that these groups have their group queues. Raises as `publish_to` does."""
        # One at a time: declared twice at once, a queue would be told to be there before it is.
        async with self._ensuring:
            missing = set(groups) - self._declared
            if not missing:
                return
            async with self._connection.channel() as channel:
                for group in sorted(missing):
                    await self._connection.in_time(declare_group_queue(channel, self._queue, group))
                    self._declared.add(group)
