"""What the product takes from the machine by default, taken from the seed and the virtual clock.

The product takes most clocks and draws as arguments. A few parts have defaults that no wiring
replaces: those are listed here, and a simulated run replaces them while it lasts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from socratic_bench.concurrency.retry_policy import AdaptivePause
from socratic_runner.limits.breaker import Breaker


def now() -> float:
    """Seconds of the running loop."""
    return asyncio.get_running_loop().time()


def stream(seed: int, name: str) -> random.Random:
    """Return a source of numbers of its own: what one part draws changes no other part's draws."""
    return random.Random(f"{seed} {name}")


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Take the product's clocks, draws and ids from the seed and the loop while this is open."""
    ids = stream(seed, "ids")
    state = random.getstate()
    random.seed(f"{seed} product")
    pauses = {"processor_time": lambda: 0.0, "clock": now}
    try:
        with (
            patch("os.urandom", ids.randbytes),
            patch.dict(AdaptivePause.__init__.__kwdefaults__, pauses),
            patch.object(Breaker.__init__, "__defaults__", (now,)),
        ):
            yield
    finally:
        random.setstate(state)
