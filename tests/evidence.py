"""The evidence of a failed test: its seed, what it waited for, and the output of its processes.

Code that starts a process, draws a seed or waits for an event registers it here.
`tests/conftest.py` adds all of it to the report of a failed test, and clears it before the next
test.
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
    """Clear the evidence before another test."""
    _kept.clear()


def chance() -> random.Random:
    """A source of randomness for the running test; a failure's report says how to repeat it."""
    given = os.environ.get(SEED)
    seed = int(given) if given else random.SystemRandom().randrange(2**32)
    print(f"{SEED}={seed} repeats this test")  # a report of a failure shows what was printed
    return random.Random(seed)


def _end_of(text: str) -> str:
    left_out = len(text) - MOST_CHARACTERS
    return text if left_out <= 0 else f"[{left_out} characters before]…{text[-MOST_CHARACTERS:]}"
