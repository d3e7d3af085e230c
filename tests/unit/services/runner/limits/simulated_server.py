"""A model's server as the limiter sees it: its concurrency, its latency, and its refusals."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from socratic_bench.adapters.stores.memory.leases import MemorySharedLimits
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Priority
from socratic_bench.errors import FailureKind, ModelCallFailed, StoreUnavailable
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.limits import PauseAnswer
from socratic_bench.scoring.exchange import Status
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.ticket import Permit
from tests.unit.services.runner.limits.virtual_time import now

TOKENS = 100


def reply(first_token_ms: int | None = 300, *, read: int | None = 50, written: int = 50) -> Reply:
    usage = Usage(visible_output_tokens=written, input_tokens=read)
    return Reply("Why?", Status.OK, usage, latency_ms=1000, first_token_ms=first_token_ms)


def failure(kind: FailureKind, retry_after: float | None = None) -> ModelCallFailed:
    return ModelCallFailed(kind, "the provider's words", retryable=True, retry_after=retry_after)


@dataclass
class Server:
    """Takes `seconds` for a call, longer under `slowdown`, and refuses calls above its capacity."""

    capacity: int
    seconds: float = 1.0
    slowdown: Callable[[int], float] = lambda _: 1.0
    """By how much a call takes longer, by the number of calls in hand."""
    sigma: float = 0.0
    """The scatter of latencies: that of their logarithm."""
    seed: int = 1
    in_hand: int = 0
    most_in_hand: int = 0
    refused: int = 0
    answered: list[float] = field(default_factory=list)
    """When."""
    latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def ask(self) -> Reply:
        if self.in_hand >= self.capacity:
            self.refused += 1
            await asyncio.sleep(0.05)
            raise failure(FailureKind.RATE_LIMITED)
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        try:
            scatter = self._random.lognormvariate(0.0, self.sigma)
            seconds = self.seconds * scatter * self.slowdown(self.in_hand)
            await asyncio.sleep(seconds)
        finally:
            self.in_hand -= 1
        self.answered.append(now())
        self.latencies.append(seconds)
        return reply(int(seconds * 300))

    def answered_since(self, start: float) -> int:
        return sum(at >= start for at in self.answered)


@dataclass
class Limiter:
    """Takes so many calls in each window of time, and counts those that it refuses, too."""

    most: int
    window: float
    seconds: float
    refused: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(1)
        self._counted: deque[float] = deque()

    async def ask(self, permit: Permit) -> Reply:
        while self._counted and self._counted[0] <= now() - self.window:
            self._counted.popleft()
        self._counted.append(now())
        if len(self._counted) > self.most:
            self.refused += 1
            await asyncio.sleep(0.02)
            error = failure(FailureKind.RATE_LIMITED)
            permit.failed(error)
            raise error
        await asyncio.sleep(self.seconds * self._random.uniform(0.5, 1.5))
        permit.replied(reply())
        return reply()


class PauseKeeper(MemorySharedLimits):
    """Keeps pauses as the store promises to; can be away, or never answer."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Pause] = {}
        self.told: list[PauseNews] = []
        self.is_unavailable = False
        self.is_silent = False

    async def pauses(self, news: Sequence[PauseNews]) -> dict[str, PauseAnswer]:
        self.told += news
        await asyncio.sleep(0.005)
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_unavailable:
            raise StoreUnavailable("the database is starting up")
        answers = {}
        for each in news:
            pause, may_call = after(self.kept.get(each.scope, NONE), each, now())
            self.kept[each.scope] = pause
            answers[each.scope] = PauseAnswer(pause.at(now()), may_call)
        return answers


@asynccontextmanager
async def through(
    limiter: ConcurrencyLimiter, tokens: int, priority: Priority = "normal"
) -> AsyncIterator[Permit]:
    """Wait to be let through, as for a call that needs no preparing."""
    with limiter.ticket(tokens, priority) as ticket:
        yield await ticket.permit()


async def call(limiter: ConcurrencyLimiter, server: Server, tokens: int = TOKENS) -> bool:
    """Make one call as the runner does; whether it was answered."""
    async with through(limiter, tokens) as permit:
        try:
            permit.replied(await server.ask())
        except ModelCallFailed as error:
            permit.failed(error)
            return False
    return True


async def keep_calling(
    limiter: ConcurrencyLimiter, server: Server, callers: int, until: float
) -> None:
    """So many runs, each making one call after the other, again and again if it fails."""
    delays = random.Random(callers)

    async def run() -> None:
        while now() < until:
            if not await call(limiter, server):
                await asyncio.sleep(delays.random() * 0.5)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(callers):
            tasks.create_task(run())
