"""What the limit of a model gains from latencies, in virtual time.

    python -m tests.simulation.latency_limits

Each row is a server and a number of runs. A run makes one call and retries it as the runner does.
The limiter sees the latency of each reply (`with`), or it does not (`without`): then refused calls
and timeouts alone cut the limit. The figures are medians over five seeds.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, NamedTuple

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_runner.conversations.call_outcomes import Retries
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.pausing import BackOff
from tests.unit.services.runner.limits.simulated_server import TOKENS, failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now

SEEDS: Final = range(5)
RUNS: Final = (45, 225, 5000)
MOST: Final = 250
"""Calls in flight at most: the default of SOCRATIC_RUNNER_IN_FLIGHT_PER_MODEL."""

TIMEOUT: Final = 60.0
"""Seconds to the first byte: the default of an experiment's `first_byte_timeout_seconds`."""


@dataclass
class Server:
    """Answers calls at once, calls beyond `slots` one after the other, and refuses the others."""

    seconds: float = 1.0
    sigma: float = 0.0
    """The scatter of latencies: that of their logarithm."""

    slots: int = 10**6
    """Calls that are worked on at the same time; the others wait in a queue."""

    capacity: int = 10**6
    """Calls in hand, the waiting ones included; the server refuses the others with 429."""

    slowdown: Callable[[int, float], float] = lambda in_hand, at: 1.0
    """The factor of a call's latency, by the calls in hand and by the time."""

    seed: int = 1
    in_hand: int = 0
    refused: int = 0
    timeouts: int = 0
    latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._slots = asyncio.Semaphore(self.slots)

    async def ask(self) -> Reply:
        if self.in_hand >= self.capacity:
            self.refused += 1
            await asyncio.sleep(0.05)
            raise failure(FailureKind.RATE_LIMITED)
        began = now()
        self.in_hand += 1
        try:
            async with asyncio.timeout(TIMEOUT), self._slots:
                scatter = self._random.lognormvariate(0.0, self.sigma)
                await asyncio.sleep(self.seconds * scatter * self.slowdown(self.in_hand, now()))
        except TimeoutError:
            self.timeouts += 1
            raise failure(FailureKind.TIMEOUT) from None
        finally:
            self.in_hand -= 1
        self.latencies.append(now() - began)
        return reply(int((now() - began) * 1000))


SERVERS: Final[dict[str, Callable[[], Server]]] = {
    "constant, 1 s": Server,
    "jitter, sigma 0.4": lambda: Server(sigma=0.4),
    "jitter, sigma 1.0": lambda: Server(sigma=1.0),
    "429 above 20": lambda: Server(sigma=0.3, capacity=20),
    "queue above 20": lambda: Server(sigma=0.3, slots=20),
    "queue above 20, 429 above 60": lambda: Server(sigma=0.3, slots=20, capacity=60),
    "local: queue above 4, 5 s": lambda: Server(seconds=5.0, sigma=0.3, slots=4),
    "local: queue above 1, 3 s": lambda: Server(seconds=3.0, sigma=0.3, slots=1),
    "thrash: (n / 20)^1.5 above 20": lambda: Server(
        sigma=0.3, slowdown=lambda n, _: max(1.0, n / 20) ** 1.5
    ),
    "ramp: 1 s to 4 s in 60 s": lambda: Server(
        sigma=0.3, slowdown=lambda _, at: min(4.0, 1.0 + at / 20)
    ),
}


class Outcome(NamedTuple):
    seconds: float
    refused: int
    timeouts: int
    failed: int
    latency: float


def outcome(new_server: Callable[[], Server], runs: int, seed: int, *, latencies: bool) -> Outcome:
    """Make all runs against one server."""
    chance = random.Random(seed).random

    async def scenario() -> Outcome:
        server = replace(new_server(), seed=seed)
        limiter = ConcurrencyLimiter(most=MOST, clock=now, back_off=BackOff(draw=chance))
        failed = 0

        async def call() -> None:
            async with through(limiter, TOKENS) as permit:
                try:
                    answer = await server.ask()
                except ModelCallFailed as error:
                    permit.failed(error)
                    raise
                unseen = replace(answer, first_token_ms=None, latency_ms=None)
                permit.replied(answer if latencies else unseen)

        async def run() -> None:
            nonlocal failed
            retries = Retries(RetryPolicy(draw=chance))
            while True:
                try:
                    return await call()
                except ModelCallFailed as error:
                    delay = retries.next_delay(error)
                if delay is None:
                    failed += 1
                    return None
                await asyncio.sleep(delay)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(runs):
                tasks.create_task(run())
        middle = median(server.latencies) if server.latencies else math.nan
        return Outcome(now(), server.refused, server.timeouts, failed, middle)

    return in_virtual_time(scenario())


def rows() -> Iterator[str]:
    """The table, line by line."""
    yield "| server | runs | seconds | refused | timeouts | failed runs | median latency, s |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, new_server in SERVERS.items():
        for runs in RUNS:
            both = [
                [outcome(new_server, runs, seed, latencies=latencies) for seed in SEEDS]
                for latencies in (True, False)
            ]
            cells = [
                " / ".join(f"{median(figures):.{digits}f}" for figures in pair)
                for digits, pair in zip(
                    (0, 0, 0, 0, 1),
                    zip(*(zip(*each, strict=True) for each in both), strict=True),
                    strict=True,
                )
            ]
            yield f"| {name} | {runs} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
