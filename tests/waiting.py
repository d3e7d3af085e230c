"""Waiting for events, for longer than any busy machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from socratic_bench.testing.samples import INTERVAL, PATIENCE, until, waiting_for

__all__ = ["INTERVAL", "PATIENCE", "block_until", "until", "waiting_for"]

Seen = TypeVar("Seen")


def block_until(look: Callable[[], Seen], what: str, patience: float = PATIENCE) -> Seen:
    """Look again and again until the result is true; for tests without an event loop."""
    begun = time.monotonic()
    try:
        while not (seen := look()):
            assert time.monotonic() < begun + patience, f"waited {patience:g} s for {what}"
            time.sleep(INTERVAL)
    except BaseException as error:
        error.add_note(f"after {time.monotonic() - begun:.1f} s of waiting for {what}")
        raise
    return seen
