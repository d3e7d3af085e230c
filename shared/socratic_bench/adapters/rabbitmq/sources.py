"""The queues that one consumer consumes: its own queue or its group queues, and its suspects."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping
from typing import Final

import structlog

from socratic_bench.adapters.rabbitmq import health, topology
from socratic_bench.adapters.rabbitmq.group_queues import GroupQueues
from socratic_bench.adapters.rabbitmq.health import Seen
from socratic_bench.adapters.rabbitmq.reconnecting import ReconnectingConnection
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

STALLED_LOOKS: Final = 3
"""Looks in a row at a queue that has messages and hands none out, until that is believed."""


class Sources:
    """Knows which queues are to be consumed, which can be, and what is wrong with the others."""

    def __init__(
        self, connection: ReconnectingConnection, queue: WorkQueue, group_queues: GroupQueues | None
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._group_queues = group_queues
        self._told: frozenset[str] = frozenset()
        self._gone: set[str] = set()
        self.consumed: dict[str, list[str]] = {}
        """The consumer tags of each queue that is consumed."""
        self._unseen: set[str] = set()
        self._stalled: Counter[str] = Counter()
        """How many looks in a row each queue had messages and handed none out."""
        self._leaderless: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._lost = False

    @property
    def suspects(self) -> str:
        """The name of the queue with the suspects."""
        return topology.suspects_queue(self._queue.name)

    @property
    def ailing(self) -> bool:
        """Whether something cannot be consumed for now."""
        return bool(self._leaderless or self._refused)

    def serve(self, groups: Collection[str]) -> None:
        """These are the groups there are."""
        self._gone.update(self._told.difference(groups))
        self._told = frozenset(groups)

    def forget_groups(self) -> None:
        """Have group queues left alone that are not consumed any more: others may remove them."""
        if self._group_queues is not None:
            for group in self._gone.difference(self._told, self._group_queues.published):
                self._group_queues.forget(group)
        self._gone.clear()

    def wanted(self) -> dict[str, str | None]:
        """Every queue that is to be consumed, with its group if it is a group queue."""
        if self._group_queues is None:
            return {self.suspects: None, self._queue.name: None}
        groups = sorted(self._told.union(self._group_queues.published))
        group_queues = {topology.group_queue(self._queue.name, group): group for group in groups}
        return {self.suspects: None, **group_queues}

    def forget_all(self) -> None:
        """Nothing is consumed any more: the channel was lost."""
        self.consumed.clear()
        self._unseen.clear()
        self._stalled.clear()

    def lose(self, tag: str | None) -> None:
        """The server ended a consumer: its queue was deleted."""
        for name in [name for name, tags in self.consumed.items() if tag in tags]:
            self.miss(name)

    def miss(self, name: str) -> None:
        """A queue has to be declared again before it is consumed."""
        self.consumed.pop(name, None)
        self._lost = True

    def compare(self, found: Mapping[str, Seen | None]) -> bool:
        """Whether the server, looked at twice, shows no consumer of something consumed here."""
        unseen = {name for name in self.consumed if (at := found.get(name)) and not at.consumers}
        doubtful = unseen & self._unseen
        for name in doubtful:
            del self.consumed[name]
        self._unseen = unseen - doubtful
        return bool(doubtful)

    def stalled(self, found: Mapping[str, Seen | None], served: Collection[str]) -> list[str]:
        """What has messages, looked at again and again, and hands out none although it may.

        A channel of the server that took a new queue for a deleted one gets nothing of it.
        `served` are the queues of which something came since the last look, or is in hand.
        """
        waiting = {
            name
            for name in self.consumed
            if (at := found.get(name)) and at.messages and at.consumers and name not in served
        }
        self._stalled = Counter({name: self._stalled[name] + 1 for name in waiting})
        return sorted(name for name, looks in self._stalled.items() if looks >= STALLED_LOOKS)

    async def ready(self) -> list[str]:
        """What is to be consumed, is not, and can be. Raises BrokerUnavailable and BrokerClosed."""
        if self._lost:
            await self._connection.restore()
            self._lost = False
        wanted = self.wanted()
        missing = {name: group for name, group in wanted.items() if name not in self.consumed}
        if not missing:
            self._leaderless, self._refused = {}, {}
            return []
        self._refused = await self._declare(missing)
        there = [name for name in missing if name not in self._refused]
        leaderless = await health.leaderless(self._connection, there)
        await self._replace(leaderless)
        return [name for name in there if name not in leaderless]

    def problems(self) -> dict[str, str]:
        """What is wrong, by the name of the queue."""
        found: dict[str, str] = {}
        for name in self.wanted():
            if name in self._leaderless:
                found[name] = health.no_leader(name)
            elif name in self._refused:
                found[name] = f"queue {name!r} cannot be declared: {self._refused[name]}"
            elif name not in self.consumed:
                found[name] = f"queue {name!r} is not consumed by this process"
        return found

    async def _declare(self, names: Mapping[str, str | None]) -> dict[str, str]:
        """Make sure of the group queues among these; returns what is wrong with which."""
        groups = {group: name for name, group in names.items() if group is not None}
        refused: dict[str, str] = {}
        if self._group_queues is None or await _failure(self._group_queues.ensure(groups)) is None:
            return refused
        for group, name in groups.items():
            if error := await _failure(self._group_queues.ensure([group])):
                log.warning("group queue cannot be used", queue=name, reason=str(error))
                refused[name] = str(error)
        return refused

    async def _replace(self, leaderless: Collection[str]) -> None:
        """Note what has no leader, and put an empty queue in the place of what lost it for good."""
        now = asyncio.get_running_loop().time()
        self._leaderless = {name: self._leaderless.get(name, now) for name in leaderless}
        for name, since in list(self._leaderless.items()):
            if since > now - health.REPLACE_SECONDS:
                continue
            log.error(health.REPLACED, queue=name)
            if await _failure(health.delete(self._connection, name)) is None:
                self._lost = True


async def _failure(work: Awaitable[None]) -> BrokerError | None:
    """Why it failed, if it did. Raises BrokerClosed."""
    try:
        await work
    except BrokerClosed:
        raise
    except BrokerError as error:
        return error
    return None
