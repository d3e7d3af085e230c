"""Calls to a model through its limiter, which a test begins and ends."""

import asyncio

from socratic_bench.domain.run import Priority
from socratic_bench.errors import ModelCallFailed
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.pausing import BackOff
from tests.unit.services.runner.limits.simulated_server import TOKENS, reply, through
from tests.unit.services.runner.limits.virtual_time import now

STEADY = BackOff(draw=lambda: 1.0)
"""Pauses last as long as they can."""

NONE = {"concurrency": None, "requests_per_minute": None, "tokens_per_minute": None}


def a_limiter(most: int = 100, **ceilings: int) -> ConcurrencyLimiter:
    limiter = ConcurrencyLimiter(most=most, clock=now, back_off=STEADY)
    limiter.set_ceilings(**{**NONE, **ceilings})
    return limiter


async def opened(most: int = 100, **ceilings: int) -> ConcurrencyLimiter:
    """A limiter whose first call was answered, long enough ago for its rates to have recovered."""
    limiter = a_limiter(most, **ceilings)
    async with through(limiter, TOKENS) as permit:
        permit.replied(reply())
    await asyncio.sleep(120)
    return limiter


async def settle() -> None:
    """Let everybody run who can without time passing."""
    for _ in range(10):
        await asyncio.sleep(0)


class Calls:
    """Calls in flight until a test ends them."""

    def __init__(self, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self.begun: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._ends: dict[int, asyncio.Future[object]] = {}

    async def begin(self, *tokens: int, priority: Priority = "normal") -> None:
        for amount in tokens:
            number = len(self.tasks)
            self.tasks.append(asyncio.create_task(self._call(number, amount, priority)))
        await settle()

    async def end(self, *numbers: int, outcome: object = None) -> None:
        for number in numbers:
            self._ends[number].set_result(outcome)
        await settle()

    async def give_up(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _call(self, number: int, tokens: int, priority: Priority) -> None:
        async with through(self.limiter, tokens, priority) as permit:
            self.begun.append(number)
            end = self._ends[number] = asyncio.get_running_loop().create_future()
            outcome = await end
            if isinstance(outcome, ModelCallFailed):
                permit.failed(outcome)
            elif outcome is not None:
                permit.replied(outcome)
