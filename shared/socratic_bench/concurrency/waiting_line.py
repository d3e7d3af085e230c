"""Tasks that wait for a change, first come first served, and round robin over groups."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from typing import Generic, TypeVar


class WaitingLine:
    """A line of waiting tasks. One that is cancelled after it was woken wakes the next."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    async def wait(self) -> None:
        """Wait until woken. The awaited change may be undone by then: check again."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places[place] = None
        try:
            await place
        except asyncio.CancelledError:
            if place in self._places:
                del self._places[place]
            else:
                self.wake_one()
            raise

    def wake_one(self) -> None:
        """Wake the first in line, if there is one."""
        while self._places:
            place, _ = self._places.popitem(last=False)
            if not place.done():
                place.set_result(None)
                return

    def wake_all(self) -> None:
        """Wake all tasks in line."""
        while self._places:
            self.wake_one()


Waiting = TypeVar("Waiting")


class RoundRobin(Generic[Waiting]):
    """The groups that a consumer may take messages from now, in turn.

    A group is in the ring exactly while it has messages and this consumer holds fewer than
    `per_group` of them, so every step finds a message.
    """

    __slots__ = ("_in_hand", "_per_group", "_ring", "receivers")

    def __init__(self, per_group: int | None) -> None:
        self.receivers = WaitingLine()
        self._per_group = per_group
        self._in_hand: Counter[str] = Counter()
        self._ring: OrderedDict[str, deque[Waiting]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ring)

    def in_hand(self, name: str) -> int:
        """Count the messages of a group in the consumer's hand; 0 without a limit per group."""
        return self._in_hand.get(name, 0)

    def offer(self, name: str, group: deque[Waiting]) -> None:
        """Add a group that has messages, unless this consumer holds enough of them."""
        if self._per_group is None or self._in_hand[name] < self._per_group:
            self._ring[name] = group
            self.receivers.wake_one()

    def withdraw(self, name: str) -> None:
        """Remove a group that has no more messages."""
        self._ring.pop(name, None)

    def take(self) -> tuple[str, deque[Waiting], Waiting]:
        """Take the first message of the group whose turn it is; the group goes to the end."""
        name, group = self._ring.popitem(last=False)
        waiting = group.popleft()
        if self._per_group is not None:
            self._in_hand[name] += 1
        if group and (self._per_group is None or self._in_hand[name] < self._per_group):
            self._ring[name] = group
        return name, group, waiting

    def settled(self, name: str, group: deque[Waiting] | None) -> None:
        """Note that the consumer settled a message of a group; `group` holds the waiting ones."""
        if self._per_group is None:
            return
        self._in_hand[name] -= 1
        if self._in_hand[name] == 0:
            del self._in_hand[name]
        if group is not None and name not in self._ring:
            self._ring[name] = group
