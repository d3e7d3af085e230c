"""Seclusion of a suspect: a consumer handles it alone until it is settled or proves harmless."""

from __future__ import annotations

from math import inf


class Seclusion:
    """Decides which messages a consumer may hand out beside those in hand. Does no I/O."""

    __slots__ = ("_alone", "_cleared", "until")

    def __init__(self) -> None:
        self._alone: int | None = None
        self._cleared: set[int] = set()
        self.until = inf
        """When the seclusion of the suspect ends; `inf` for never, or without a suspect."""

    def begin(self, receipt: int, until: float) -> None:
        """Note that a suspect is handed out; it stays alone until `until` or its settlement."""
        self._alone, self.until = receipt, until

    def settled(self, receipt: int) -> None:
        """Note that a delivery, suspect or not, left the consumer's hand."""
        self._cleared.discard(receipt)
        if receipt == self._alone:
            self._alone, self.until = None, inf

    def clear(self, now: float) -> bool:
        """End the seclusion of a suspect whose time is over; tells whether one ended."""
        if self._alone is None or now < self.until:
            return False
        self._cleared.add(self._alone)
        self._alone, self.until = None, inf
        return True

    def forget_all(self) -> None:
        """Forget all deliveries in hand."""
        self._alone, self.until = None, inf
        self._cleared.clear()

    @property
    def admits_others(self) -> bool:
        """Tell whether an ordinary message may be handed out now."""
        return self._alone is None

    def admits_suspect(self, in_hand: int) -> bool:
        """Tell whether a suspect may be handed out beside so many deliveries in hand."""
        return in_hand == len(self._cleared)
