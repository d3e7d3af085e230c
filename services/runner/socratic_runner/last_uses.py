"""Remembers the last use of cached things, so that idle ones can be dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable
from typing import Final, Generic, TypeVar

IDLE_SECONDS: Final = 600.0
"""Seconds without use after which a thing is idle: a running experiment opens it again."""

BETWEEN_LOOKS: Final = 60.0
"""Seconds between two searches for idle things."""

Key = TypeVar("Key", bound=Hashable)


class LastUses(Generic[Key]):
    """Remembers when each key was last used."""

    def __init__(self) -> None:
        self._at: dict[Key, float] = {}
        self._next_look = 0.0

    def note(self, key: Key) -> None:
        """Note a use of a key."""
        self._at[key] = _now()

    @property
    def look_is_due(self) -> bool:
        """Tell whether another search for idle keys is due."""
        return _now() >= self._next_look

    def take_idle(self, in_use: Collection[Key] = ()) -> list[Key]:
        """Remove and return the idle keys, except those `in_use`."""
        now = _now()
        self._next_look = now + BETWEEN_LOOKS
        self._at |= dict.fromkeys(in_use, now)
        idle = [
            key for key, at in self._at.items() if at + IDLE_SECONDS <= now and key not in in_use
        ]
        for key in idle:
            del self._at[key]
        return idle


def _now() -> float:
    return asyncio.get_running_loop().time()
