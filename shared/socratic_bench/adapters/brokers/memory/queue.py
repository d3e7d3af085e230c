"""One work queue in memory: its waiting, delayed and dead messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from socratic_bench.concurrency.waiting_line import RoundRobin, WaitingLine
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import SUSPECT_AFTER, DeadLetter, Delivery, ended_alone


class Waiting(NamedTuple):
    """A waiting message of a queue."""

    message: Message
    attempts: int
    """The number of its counted retries."""

    redeliveries: int = 0
    """Unsettled returns since the queue, or the queue of suspects, got it."""

    suspect: bool = False


Group = deque[Waiting]


class MemoryQueue:
    """The messages of one work queue that no consumer holds.

    A group exists while it has messages. Its first message adds it to the turns of every consumer
    and its last one removes it: each step takes constant time for any number of messages and
    groups.
    """

    def __init__(self, name: str, *, max_waiting: int, publishers: WaitingLine) -> None:
        self.name = name
        self._max_waiting = max_waiting
        self._publishers = publishers
        self._groups: dict[str, Group] = {}
        self._suspects: deque[Waiting] = deque()
        self._ready = 0
        self._delayed: dict[int, tuple[str, asyncio.TimerHandle]] = {}
        self._dead: deque[DeadLetter] = deque()
        self._turns: list[RoundRobin[Waiting]] = []

    @property
    def depth(self) -> int:
        """The number of waiting messages, suspects and delayed ones included."""
        return self._ready + len(self._suspects) + len(self._delayed)

    def depth_of(self, group: str) -> int:
        """Count the waiting messages of a group, suspects and delayed ones included."""
        suspects = sum(each.message.group == group for each in self._suspects)
        delayed = sum(each == group for each, _ in self._delayed.values())
        return len(self._groups.get(group, ())) + suspects + delayed

    @property
    def has_suspects(self) -> bool:
        """Whether a suspect waits. A consumer with empty hands takes it; others take nothing."""
        return bool(self._suspects)

    @property
    def dead(self) -> int:
        """The number of dead letters."""
        return len(self._dead)

    @property
    def room(self) -> int:
        """The number of further messages that it takes from publishers."""
        return max(0, self._max_waiting - self.depth)

    def join(self, turns: RoundRobin[Waiting]) -> None:
        """Add a consumer."""
        self._turns.append(turns)
        for name, group in self._groups.items():
            turns.offer(name, group)

    def leave(self, turns: RoundRobin[Waiting]) -> None:
        """Remove a consumer."""
        self._turns.remove(turns)

    def put(self, messages: Iterable[Message]) -> None:
        """Add new messages, each as the last of its group."""
        for message in messages:
            self._put(Waiting(message, 0))

    def take(self, turns: RoundRobin[Waiting], limit: int) -> list[Waiting]:
        """Return up to `limit` messages for a consumer, from its groups in turn."""
        taken: list[Waiting] = []
        while len(taken) < limit and turns:
            name, group, waiting = turns.take()
            taken.append(waiting)
            if not group:
                self._remove_group(name)
        self._ready -= len(taken)
        if taken and self.room:
            self._publishers.wake_one()
        return taken

    def take_suspect(self) -> Waiting:
        """Return the first suspect, for a consumer with empty hands."""
        suspect = self._suspects.popleft()
        if not self._suspects:
            self._wake_receivers()
        return suspect

    def settled(self, turns: RoundRobin[Waiting], group: str) -> None:
        """Note that a consumer settled one message of a group."""
        turns.settled(group, self._groups.get(group))

    def deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        """Put a message back as the first of its group, after `delay` seconds."""
        waiting = Waiting(delivery.message, attempts)
        if delay > 0:
            timer = asyncio.get_running_loop().call_later(
                delay, self._due, delivery.receipt, waiting
            )
            self._delayed[delivery.receipt] = waiting.message.group, timer
        else:
            self._put(waiting, first=True)

    def give_back(self, waiting: Waiting) -> None:
        """Take back the unsettled messages of an ended consumer, as the first of their groups."""
        redeliveries = waiting.redeliveries + 1
        if redeliveries < SUSPECT_AFTER:
            again = waiting._replace(redeliveries=redeliveries)
            if waiting.suspect:
                self._add_suspect(again)
            else:
                self._put(again, first=True)
        elif waiting.suspect:
            reason = ended_alone(redeliveries)
            attempt = waiting.attempts + 1
            self._dead.append(DeadLetter(waiting.message, self.name, reason, attempt))
        else:
            self._add_suspect(waiting._replace(redeliveries=0, suspect=True))

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Move a message to the dead letters."""
        self._dead.append(DeadLetter(delivery.message, self.name, reason, delivery.attempt))

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the oldest dead letters."""
        return list(islice(self._dead, limit))

    def redrive(self, limit: int | None) -> int:
        """Put the oldest dead letters back as new messages; returns their number."""
        count = len(self._dead) if limit is None else min(limit, len(self._dead))
        for _ in range(count):
            self._put(Waiting(self._dead.popleft().message, 0))
        return count

    def purge_dead_letters(self) -> int:
        """Delete the dead letters; returns their number."""
        count = len(self._dead)
        self._dead.clear()
        return count

    def remove_group(self, name: str) -> None:
        """Delete the waiting messages of a group."""
        if group := self._groups.get(name):
            self._ready -= len(group)
            group.clear()
            self._remove_group(name)
        for receipt, (delayed, timer) in list(self._delayed.items()):
            if delayed == name:
                timer.cancel()
                del self._delayed[receipt]
        if self.room:
            self._publishers.wake_one()

    def close(self) -> None:
        """Stop the timers of delayed messages."""
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()

    def _add_suspect(self, suspect: Waiting) -> None:
        self._suspects.append(suspect)
        self._wake_receivers()

    def _wake_receivers(self) -> None:
        for turns in self._turns:
            turns.receivers.wake_all()

    def _put(self, waiting: Waiting, *, first: bool = False) -> None:
        self._ready += 1
        group = self._groups.get(waiting.message.group)
        if group is None:
            self._add_group(waiting)
        elif first:
            group.appendleft(waiting)
        else:
            group.append(waiting)

    def _due(self, receipt: int, waiting: Waiting) -> None:
        del self._delayed[receipt]
        self._put(waiting, first=True)

    def _add_group(self, waiting: Waiting) -> None:
        name = waiting.message.group
        group = self._groups[name] = deque((waiting,))
        for turns in self._turns:
            turns.offer(name, group)

    def _remove_group(self, name: str) -> None:
        del self._groups[name]
        for turns in self._turns:
            turns.withdraw(name)
