"""The limit that a limiter discovers fits unknown servers."""

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import mean

import pytest

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_runner.conversations.call_outcomes import Retries
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.pausing import BackOff
from socratic_runner.limits.sharing import SharedPauses
from tests.unit.services.runner.limits.simulated_server import (
    TOKENS,
    Limiter,
    PauseKeeper,
    Server,
    call,
    keep_calling,
    through,
)
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now

WARM = 60.0
END = 300.0


MODEL = TutorModel(id="openai/gpt")


def a_limiter(most: int = 250) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(most=most, clock=now, back_off=BackOff(draw=random.Random(1).random))


@pytest.mark.parametrize(
    ("capacity", "most_refused"),
    [
        (2, 0.06),
        (4, 0.05),
        (10, 0.03),
        pytest.param(40, 0.01, marks=pytest.mark.long),
        pytest.param(100, 0.003, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_a_server_that_refuses_what_is_too_much_is_used_well(capacity, most_refused, sigma):
    server = Server(capacity, sigma=sigma)
    in_virtual_time(keep_calling(a_limiter(), server, 250, END))
    used = sum(server.latencies) / (capacity * END)
    assert used >= 0.8
    assert server.answered_since(WARM) >= 0.8 * capacity * (END - WARM) / (1 + sigma / 4)
    assert server.refused <= most_refused * (server.refused + len(server.answered))


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_a_server_that_becomes_slow_under_load_is_not_flooded(sigma):
    server = Server(10**6, sigma=sigma, slowdown=lambda in_hand: max(1.0, in_hand / 20))
    limiter = a_limiter()
    in_virtual_time(keep_calling(limiter, server, 250, END))
    assert 15 <= limiter.concurrency_limit <= 60
    assert server.answered_since(WARM) >= 0.9 * 20 * (END - WARM) / (1 + sigma / 4)
    typical = sorted(server.latencies[-1000:])[500]
    assert typical <= 2.5, "instead of the 12.5 that 250 calls at once would take"


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_latencies_that_scatter_do_not_lower_the_limit(seed):
    server = Server(10**6, sigma=0.4, seed=seed)
    limiter = a_limiter(most=32)
    lowest = 32.0

    async def scenario():
        nonlocal lowest
        calling = asyncio.create_task(keep_calling(limiter, server, 40, END))
        await asyncio.sleep(WARM)
        while not calling.done():
            lowest = min(lowest, limiter.concurrency_limit)
            await asyncio.sleep(1)
        await calling

    in_virtual_time(scenario())
    assert lowest >= 32 * 0.8


@pytest.mark.parametrize("factor", [2.5, 5, 10])
def test_a_model_that_becomes_slower_is_asked_as_much_as_before_after_a_while(factor):
    server = Server(10**6, sigma=0.4, slowdown=lambda _: factor if now() > 100 else 1.0)
    limiter = a_limiter(most=32)
    in_virtual_time(keep_calling(limiter, server, 40, 800))
    assert limiter.concurrency_limit == 32


@pytest.mark.parametrize(
    ("capacity", "trials", "sharing"),
    [
        (10, 6, True),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in ((10, 6, False), (40, 12, True), (40, 12, False))
        ),
    ],
)
def test_two_limiters_before_one_server_come_to_about_equal_shares(capacity, trials, sharing):
    """On average: who is refused when is a matter of chance."""
    found = [two_limiters(capacity, seed, sharing=sharing) for seed in range(trials)]
    assert mean(even for even, _ in found) >= 0.75
    assert mean(used for _, used in found) >= 0.8


def two_limiters(capacity, seed, *, sharing):
    """By how much one is answered less than the other, and how much of the server is used."""
    server = Server(capacity, sigma=0.3, seed=seed)
    answered = [0, 0]

    async def keep(which, limiter):
        async def run():
            while now() < 400:
                if not await call(limiter, server):
                    await asyncio.sleep(0.2)
                elif now() > 100:
                    answered[which] += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(run())

    async def scenario():
        async with (
            limiters_of_runners(2, seed, sharing=sharing) as (first, second),
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(keep(0, first))
            await asyncio.sleep(30)
            tasks.create_task(keep(1, second))

    in_virtual_time(scenario())
    return min(answered) / max(answered), sum(answered) * 1.05 / (capacity * 300)


@asynccontextmanager
async def limiters_of_runners(runners, seed=0, *, sharing=True):
    """The limiter of one model in each of several runners, which share its pauses, or do not."""
    back_off = BackOff(draw=random.Random(seed).random)
    keeper = PauseKeeper()
    async with AsyncExitStack() as stack:
        limiters = [
            ConcurrencyLimiters(most=250, clock=now, back_off=back_off) for _ in range(runners)
        ]
        for each in limiters if sharing else ():
            await stack.enter_async_context(SharedPauses(keeper, each))
        yield [each.limiter_for(MODEL, None) for each in limiters]


@pytest.mark.parametrize(("runners", "seconds"), [(1, 0.05), (3, 0.05), (3, 1.0), (3, 5.0)])
def test_a_limiter_that_counts_refused_calls_refuses_few_and_all_are_answered(runners, seconds):
    server = Limiter(most=20, window=2.0, seconds=seconds)
    failed = []

    async def run(limiter):
        retries = Retries(RetryPolicy())
        while True:
            try:
                async with through(limiter, TOKENS) as permit:
                    return await server.ask(permit)
            except ModelCallFailed as error:
                delay = retries.next_delay(error)
                if delay is None:
                    failed.append(error)
                    return None
            await asyncio.sleep(delay)

    async def scenario():
        async with limiters_of_runners(runners) as limiters:
            await asyncio.gather(*(run(limiters[number % runners]) for number in range(300)))
        return now()

    took = in_virtual_time(scenario())
    assert failed == []
    assert server.refused <= 300
    assert took <= 120, "30 s would do if the limit were known"


def test_an_outage_costs_few_calls():
    server = Server(40, seconds=0.2)

    async def scenario():
        async with limiters_of_runners(1) as [limiter]:
            server.capacity = 0
            calling = asyncio.create_task(keep_calling(limiter, server, 45, 60))
            await asyncio.sleep(5)
            refused = server.refused
            server.capacity = 40
            await calling
        return refused

    assert in_virtual_time(scenario()) <= 6
    assert server.answered_since(20) > 0


def test_after_an_outage_it_comes_back_to_what_it_had():
    server = Server(40)
    limiter = a_limiter()

    async def scenario():
        calling = asyncio.create_task(keep_calling(limiter, server, 100, 400))
        await asyncio.sleep(100)
        server.capacity = 0
        await asyncio.sleep(100)
        assert limiter.concurrency_limit < 2
        server.capacity = 40
        await calling

    in_virtual_time(scenario())
    assert limiter.concurrency_limit >= 20


def test_twenty_five_models_with_a_ceiling_of_four_are_used_to_the_full():
    runs = 400
    ideal = runs * 0.2 / 4

    async def scenario():
        servers = [Server(4, seconds=0.2) for _ in range(25)]
        limiters = [a_limiter() for _ in servers]
        for limiter in limiters:
            limiter.set_ceilings(concurrency=4, requests_per_minute=None, tokens_per_minute=None)
        async with asyncio.TaskGroup() as tasks:
            for limiter, server in zip(limiters, servers, strict=True):
                for _ in range(runs):
                    tasks.create_task(call(limiter, server))
        assert sum(server.refused for server in servers) == 0
        return now()

    assert in_virtual_time(scenario()) <= ideal / 0.97
