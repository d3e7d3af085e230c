"""The prefetch of each queue, in batches: the more often a queue is redelivered, the smaller.

The server counts every batch of a killed process as redelivered, begun or not. So the prefetch of a
queue shrinks with the redeliveries of its batches: when one batch becomes a suspect, only a few
others were in the same process each time.
"""

from __future__ import annotations

from typing import Final

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
