"""The queues of one consumer: its own queue or its group queues, and its suspects.

The server counts every batch of a killed process as redelivered, begun or not. So the prefetch of a
queue shrinks with the redeliveries of its batches: when one batch becomes a suspect, only a few
others were in the same process each time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping
from typing import Final

import structlog

from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.declaring import GroupQueues
from socratic_bench.adapters.brokers.rabbitmq.health import QueueReport
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

# D-044: RabbitMQ may count a consumer and send it nothing.
STALLED_LOOKS: Final = 3
"""Looks in a row that show messages but no deliveries before a queue counts as stalled."""


class Sources:
    """Knows which queues should be consumed, which can be, and the problems of the others."""

    def __init__(
        self, connection: ReconnectingConnection, queue: WorkQueue, group_queues: GroupQueues | None
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._group_queues = group_queues
        self._told: frozenset[str] = frozenset()
        self._gone: set[str] = set()
        self.consumed: dict[str, list[str]] = {}
        """The consumer tags of each consumed queue."""
        self._unseen: set[str] = set()
        self._stalled: Counter[str] = Counter()
        """Looks in a row that showed messages but no deliveries, by queue."""
        self._leaderless: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._lost = False
        self.trouble = ""
        """Why the last attempt to consume failed."""

    @property
    def suspects(self) -> str:
        """The name of the queue of suspects."""
        return topology.suspects_queue(self._queue.name)

    @property
    def ailing(self) -> bool:
        """Whether some queue cannot be consumed at present."""
        return bool(self._leaderless or self._refused)

    def serve(self, groups: Collection[str]) -> None:
        """Set the groups to serve."""
        self._gone.update(self._told.difference(groups))
        self._told = frozenset(groups)

    def all_served(self, groups: Collection[str]) -> bool:
        """Tell whether all of these groups are to be served."""
        published = self._group_queues.published if self._group_queues is not None else ()
        return self._told.union(published).issuperset(groups)

    def forget_groups(self) -> None:
        """Stop declaring group queues that are no longer consumed: others may remove them."""
        if self._group_queues is not None:
            for group in self._gone.difference(self._told, self._group_queues.published):
                self._group_queues.forget(group)
        self._gone.clear()

    def wanted(self) -> dict[str, str | None]:
        """Return every queue to consume, with its group if it is a group queue."""
        if self._group_queues is None:
            return {self.suspects: None, self._queue.name: None}
        groups = sorted(self._told.union(self._group_queues.published))
        group_queues = {topology.group_queue(self._queue.name, group): group for group in groups}
        return {self.suspects: None, **group_queues}

    def forget_all(self) -> None:
        """Note that the channel, and with it every consumer, was lost."""
        self.consumed.clear()
        self._unseen.clear()
        self._stalled.clear()

    def lose(self, tag: str | None) -> list[str]:
        """Note that the server cancelled a consumer; returns the name of its queue, if known."""
        lost = [name for name, tags in self.consumed.items() if tag in tags]
        for name in lost:
            self.miss(name)
        return lost

    def miss(self, name: str) -> None:
        """Note that a queue has to be declared again before it is consumed."""
        self.consumed.pop(name, None)
        self._lost = True

    def compare(self, found: Mapping[str, QueueReport | None]) -> bool:
        """Tell whether two looks at the server show no consumer of a queue consumed here."""
        unseen = {name for name in self.consumed if (at := found.get(name)) and not at.consumers}
        doubtful = unseen & self._unseen
        for name in doubtful:
            del self.consumed[name]
        self._unseen = unseen - doubtful
        return bool(doubtful)

    def stalled(
        self, found: Mapping[str, QueueReport | None], served: Collection[str]
    ) -> list[str]:
        """Return queues that show messages in several looks and deliver none although they may.

        A channel of the server that took a new queue for a deleted one delivers nothing of it.
        `served` are the queues that delivered since the last look, or with messages in hand.
        """
        waiting = {
            name
            for name in self.consumed
            if (at := found.get(name)) and at.messages and at.consumers and name not in served
        }
        self._stalled = Counter({name: self._stalled[name] + 1 for name in waiting})
        return sorted(name for name, looks in self._stalled.items() if looks >= STALLED_LOOKS)

    async def ready(self) -> list[str]:
        """Return the queues that should be consumed, can be, and are not yet.

        Raises BrokerUnavailable and BrokerClosed.
        """
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
        """Problems by the name of the queue."""
        found: dict[str, str] = {}
        for name in self.wanted():
            if name in self._leaderless:
                found[name] = health.no_leader(name)
            elif name in self._refused:
                found[name] = f"queue {name!r} cannot be declared: {self._refused[name]}"
            elif name not in self.consumed:
                why = f": {self.trouble}" if self.trouble else ""
                found[name] = f"queue {name!r} is not consumed by this process{why}"
        return found

    async def _declare(self, names: Mapping[str, str | None]) -> dict[str, str]:
        """Declare the group queues among these; returns the problem of each that failed."""
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
        """Note leaderless queues, and replace those by empty ones that lost it for good."""
        now = asyncio.get_running_loop().time()
        self._leaderless = {name: self._leaderless.get(name, now) for name in leaderless}
        for name, since in list(self._leaderless.items()):
            if since > now - health.REPLACE_SECONDS:
                continue
            log.error(health.REPLACED, queue=name)
            if await _failure(health.delete(self._connection, name)) is None:
                self._lost = True


async def _failure(work: Awaitable[None]) -> BrokerError | None:
    """Return the error that a declaration ended with, if any. Raises BrokerClosed."""
    try:
        await work
    except BrokerClosed:
        raise
    except BrokerError as error:
        return error
    return None


FEWEST_BATCHES: Final = 64
"""The smallest prefetch in batches; batches are not full when there is little to do."""

FEWEST_BATCHES_OF_A_GROUP: Final = 25
"""The same for the queue of one group: returned messages come back one by one."""

# D-051: so that a crash loop makes suspects of one batch, not of all prefetched.
PREFETCH_DIVISOR: Final = 4
"""Divides the prefetch for each redelivery after the first."""


def batches_ahead(prefetch: int, size: int) -> int:
    """The prefetch of a queue in batches of up to `size` messages."""
    return min(prefetch, max(-(-prefetch // size), FEWEST_BATCHES))


def batches_ahead_of_a_group(prefetch: int, size: int) -> int:
    """The prefetch of a group queue in batches of up to `size` messages."""
    return min(prefetch, max(-(-prefetch // size), FEWEST_BATCHES_OF_A_GROUP))


class Widths:
    """The prefetch of each queue, in batches: one until the first batch is seen.

    It is at most `full`. For batches of several messages it is one batch more than hold
    `most_messages`, since other consumers cannot begin messages that this one holds. The one more
    keeps the handler busy while a batch waits for its last message.
    """

    def __init__(self, full: int, most_messages: int | None = None) -> None:
        self._full = full
        self._most_messages = most_messages
        self._widths: dict[str, int] = {}
        self._more: dict[str, int] = {}

    def begin(self, name: str) -> int:
        """Start with a queue; returns its first prefetch."""
        self._widths[name] = 1
        self._more.pop(name, None)
        return 1

    def forget(self, name: str) -> None:
        """Forget a queue that is no longer consumed."""
        self._widths.pop(name, None)
        self._more.pop(name, None)

    def saw(self, name: str, redeliveries: int, messages: int) -> bool:
        """Note a batch and its redeliveries; tells whether the prefetch may grow."""
        full = self._full
        if self._most_messages is not None:
            full = min(full, -(-self._most_messages // messages) + 1)
        width = max(1, full // PREFETCH_DIVISOR ** max(0, redeliveries - 1))
        more = width - self._widths.get(name, width)
        if more <= 0:
            return False
        self._widths[name] = width
        self._more[name] = self._more.get(name, 0) + more
        return True

    def take_more(self) -> dict[str, int]:
        """Return by how much the prefetch of each queue may grow since the last call."""
        more, self._more = self._more, {}
        return more
