"""The queues in which messages wait: one for each delay of a queue, made when it is needed."""

from __future__ import annotations

import asyncio

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.link import Link
from socratic_bench.ports.broker import WorkQueue


class DelayQueues:
    """Those of one queue. Most services never need one, and each takes files of the server."""

    def __init__(self, link: Link, queue: WorkQueue) -> None:
        self._link = link
        self._queue = queue
        self._declared: dict[float, str] = {}
        self._declaring = asyncio.Lock()

    @property
    def declared(self) -> list[str]:
        """The names of those that were needed so far, by this process."""
        return list(self._declared.values())

    async def waiting_for(self, delay: float) -> str:
        """The queue to wait in for `delay` seconds, or a little longer.

        Raises BrokerUnavailable and BrokerClosed.
        """
        delay = topology.shortest_delay_of(delay)
        async with self._declaring:
            if delay not in self._declared:
                name = topology.delay_queue(self._queue.name, delay)
                arguments = topology.delay_arguments(self._queue, delay)
                async with self._link.channel() as channel:
                    await self._link.in_time(
                        channel.declare_queue(name, durable=True, arguments=arguments)
                    )
                self._declared[delay] = name
        return self._declared[delay]
