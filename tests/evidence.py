"""What a failed test leaves to read: its seed, what it waited for, what its processes said.

Whoever starts a process, draws a seed or waits for something keeps it here. `tests/conftest.py`
adds all of it to the report of a test that fails, and forgets it when the next test begins.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

MOST_CHARACTERS = 8_000
"""The length of one piece of evidence: its end, where a failure usually explains itself."""

SEED = "SOCRATIC_TEST_SEED"

_kept: list[tuple[str, Callable[[], str]]] = []


def keep(title: str, text: Callable[[], str]) -> None:
    """Show what `text` returns then, under `title`, if the test that is running fails."""
    _kept.append((title, text))


def sections() -> list[tuple[str, str]]:
    """All that was kept since the test began, as titles and texts."""
    return [(title, _end_of(text())) for title, text in _kept]


def forget() -> None:
    """Forget what was kept: another test begins."""
    _kept.clear()


def chance() -> random.Random:
    """A source of chance for the test that is running; a failure says how to repeat it."""
    given = os.environ.get(SEED)
    seed = int(given) if given else random.SystemRandom().randrange(2**32)
    print(f"{SEED}={seed} repeats this test")  # a report of a failure shows what was printed
    return random.Random(seed)


def _end_of(text: str) -> str:
    left_out = len(text) - MOST_CHARACTERS
    return text if left_out <= 0 else f"[{left_out} characters before]…{text[-MOST_CHARACTERS:]}"
