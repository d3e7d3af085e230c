"""Remembers the last use of cached things, so that idle and surplus ones can be dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, Generic, TypeVar

IDLE_SECONDS: Final = 600.0
"""Seconds without use after which a thing is idle: a running experiment opens it again."""

BETWEEN_LOOKS: Final = 60.0
"""Seconds between two searches for idle things."""

# Within IDLE_SECONDS more experiments may come than a runner has memory for.
MOST_EXPERIMENTS: Final = 200
"""Experiments that a runner remembers, unless more have runs in hand."""

MOST_CLIENTS: Final = 25 * MOST_EXPERIMENTS
"""Clients that a runner keeps open, unless runs in hand use more."""

Key = TypeVar("Key", bound=Hashable)


class LastUses(Generic[Key]):
    """Remembers when each key was last used."""

    def __init__(self, most: int) -> None:
        """More than `most` keys are too many: those unused for longest can be dropped."""
        self._most = most
        self._at: dict[Key, float] = {}
        """In the order of the uses, the oldest first."""

        self._next_look = 0.0

    def note(self, key: Key) -> None:
        """Note a use of a key."""
        self._note_at(key, _now())

    @property
    def look_is_due(self) -> bool:
        """Tell whether there are too many keys, or another search for idle ones is due."""
        return len(self._at) > self._most or _now() >= self._next_look

    def take_idle(self, in_use: AbstractSet[Key] = frozenset()) -> list[Key]:
        """Remove and return the idle keys and the surplus, except those `in_use`."""
        now = _now()
        self._next_look = now + BETWEEN_LOOKS
        for key in in_use:
            self._note_at(key, now)
        surplus = len(self._at) - self._most
        unused = islice(self._at.items(), len(self._at) - len(in_use))
        idle = list[Key]()
        for key, at in unused:
            if len(idle) >= surplus and at + IDLE_SECONDS > now:
                break
            idle.append(key)
        for key in idle:
            del self._at[key]
        return idle

    def _note_at(self, key: Key, now: float) -> None:
        self._at.pop(key, None)
        self._at[key] = now


def _now() -> float:
    return asyncio.get_running_loop().time()
