"""How much the server may send ahead of each queue: what was redelivered often, little at a time.

Whatever a killed process had been sent counts as redelivered, begun with or not. So the more often
the batches of a queue came back, the fewer are asked for at a time: when a batch becomes suspect,
few others were in the same hand each time.
"""

from __future__ import annotations

from typing import Final

FEWEST_BATCHES: Final = 64
"""Batches the server sends ahead at least, since they are not full when there is little to do."""

FEWEST_BATCHES_OF_A_GROUP: Final = 25
"""The same for the queue of one group: messages that come back come one by one."""

NARROWER: Final = 4
"""How many times fewer, for each redelivery after the first."""


def batches_ahead(prefetch: int, size: int) -> int:
    """How many batches of up to `size` messages the server may send ahead, of a whole queue."""
    return min(prefetch, max(-(-prefetch // size), FEWEST_BATCHES))


def batches_ahead_of_a_group(prefetch: int, size: int) -> int:
    """How many batches of up to `size` messages the server may send ahead, of one group."""
    return min(prefetch, max(-(-prefetch // size), FEWEST_BATCHES_OF_A_GROUP))


class Widths:
    """How many batches of each queue the server may send ahead: one until the first is seen.

    At most `full` of them, and of those that hold several messages one more than hold
    `most_messages`: what one consumer has in hand, the others cannot begin with. The one more is
    for what has to come while a batch waits for the last of its messages.
    """

    def __init__(self, full: int, most_messages: int | None = None) -> None:
        self._full = full
        self._most_messages = most_messages
        self._widths: dict[str, int] = {}
        self._more: dict[str, int] = {}

    def begin(self, name: str) -> int:
        """How many of a queue to begin with."""
        self._widths[name] = 1
        self._more.pop(name, None)
        return 1

    def forget(self, name: str) -> None:
        """A queue is not consumed any more."""
        self._widths.pop(name, None)
        self._more.pop(name, None)

    def saw(self, name: str, redeliveries: int, messages: int) -> bool:
        """A batch of so many messages came that was redelivered so often. Whether more may be sent
        ahead now.
        """
        full = self._full
        if self._most_messages is not None:
            full = min(full, -(-self._most_messages // messages) + 1)
        width = max(1, full // NARROWER ** max(0, redeliveries - 1))
        more = width - self._widths.get(name, width)
        if more <= 0:
            return False
        self._widths[name] = width
        self._more[name] = self._more.get(name, 0) + more
        return True

    def take_more(self) -> dict[str, int]:
        """How many more than before may be sent ahead of each queue, where that has changed."""
        more, self._more = self._more, {}
        return more
