"""A suspect in a consumer's hand: alone there, until it is settled or has ended nobody for long."""

from __future__ import annotations

from math import inf


class Seclusion:
    """Knows what may be handed out beside what is in hand. Does no input or output."""

    __slots__ = ("_alone", "_cleared", "until")

    def __init__(self) -> None:
        self._alone: int | None = None
        self._cleared: set[int] = set()
        self.until = inf
        """When the suspect that is alone need not be so any more; `inf` for never, or for none."""

    def begin(self, receipt: int, until: float) -> None:
        """A suspect is handed out, and is alone until then, unless it is settled before."""
        self._alone, self.until = receipt, until

    def settled(self, receipt: int) -> None:
        """A delivery, a suspect or not, is in hand no more."""
        self._cleared.discard(receipt)
        if receipt == self._alone:
            self._alone, self.until = None, inf

    def clear(self, now: float) -> bool:
        """Let others come beside the suspect that was alone for long enough, if there is one."""
        if self._alone is None or now < self.until:
            return False
        self._cleared.add(self._alone)
        self._alone, self.until = None, inf
        return True

    def forget_all(self) -> None:
        """Nothing is in hand any more."""
        self._alone, self.until = None, inf
        self._cleared.clear()

    @property
    def admits_others(self) -> bool:
        """Whether what is no suspect may be handed out now."""
        return self._alone is None

    def admits_suspect(self, in_hand: int) -> bool:
        """Whether a suspect may be handed out while so much is in hand."""
        return in_hand == len(self._cleared)
