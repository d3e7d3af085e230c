"""The limiter: no call passes too early, waits too long, or is forgotten."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace

import pytest

from socratic_bench.errors import FailureKind
from socratic_runner.limits import ticket
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.ticket import LimiterClosed, wake
from tests.unit.services.runner.limits.concurrency_limiter.calls import (
    NONE,
    Calls,
    a_limiter,
    opened,
    settle,
)
from tests.unit.services.runner.limits.simulated_server import failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now


def test_the_first_call_is_alone_and_eight_follow_its_reply():
    async def scenario():
        calls = Calls(a_limiter())
        await calls.begin(*[1] * 20)
        assert calls.begun == [0]
        assert (calls.limiter.in_flight, calls.limiter.waiting) == (1, 19)
        await calls.end(0, outcome=reply())
        assert calls.begun == list(range(9))
        assert calls.limiter.concurrency_limit == 8
        await calls.give_up()
        assert (calls.limiter.in_flight, calls.limiter.waiting) == (0, 0)

    in_virtual_time(scenario())


async def quick(*, latency_ms: int = 200, **ceilings: int) -> ConcurrencyLimiter:
    """A limiter with two calls under way at a model whose calls take so long."""
    limiter = await opened(most=2, **ceilings)
    for _ in range(50):
        async with through(limiter, 1) as permit:
            permit.replied(replace(reply(), latency_ms=latency_ms))
    await asyncio.sleep(120)
    return limiter


async def near(limiter: ConcurrencyLimiter, *tokens: int) -> list[bool]:
    """The calls of this line that should prepare."""
    with ExitStack() as line:
        tickets = [line.enter_context(limiter.ticket(each)) for each in tokens]
        told = [asyncio.create_task(ticket.near()) for ticket in tickets]
        await settle()
        are_near = [each.done() for each in told]
        for each in told:
            each.cancel()
        await asyncio.gather(*told, return_exceptions=True)
    return are_near


def test_calls_to_a_quick_model_are_prepared_while_as_many_are_under_way():
    async def scenario():
        assert await near(await quick(), *[1] * 6) == [True] * 4 + [False] * 2

    in_virtual_time(scenario())


def test_a_call_wakes_when_it_should_prepare_and_when_it_may_begin_and_not_for_others(
    monkeypatch,
):
    woken = []

    def note_and_wake(waiter):
        woken.append(waiter)
        wake(waiter)

    async def scenario():
        calls = Calls(await quick())
        await calls.begin(*[1] * 2)
        monkeypatch.setattr(ticket, "wake", note_and_wake)
        await calls.begin(*[1] * 4)
        for number in range(5):
            before = len(woken)
            await calls.end(number, outcome=reply())
            assert len(woken) - before <= 2
        assert calls.begun == list(range(6))
        await calls.give_up()

    in_virtual_time(scenario())
    assert woken


@pytest.mark.parametrize(
    ("latency_ms", "ceilings"),
    [(20_000, {}), (200, {"requests_per_minute": 2}), (200, {"tokens_per_minute": 20})],
)
def test_nothing_is_prepared_where_a_call_takes_long_or_something_else_is_in_the_way(
    latency_ms, ceilings
):
    async def scenario():
        limiter = await quick(latency_ms=latency_ms, **ceilings)
        assert sum(await near(limiter, *[10] * 6)) <= 2

    in_virtual_time(scenario())


def test_a_pause_prepares_nothing():
    async def scenario():
        limiter = await quick()
        async with through(limiter, 1) as permit:
            permit.failed(failure(FailureKind.RATE_LIMITED, retry_after=30))
            assert await near(limiter, 1, 1) == [False, False]

    in_virtual_time(scenario())


def test_who_does_not_want_to_wait_any_longer_keeps_the_place():
    async def scenario():
        limiter = await opened(most=1)
        async with AsyncExitStack() as first:
            await first.enter_async_context(through(limiter, 1))
            with limiter.ticket(1) as second, limiter.ticket(1) as third:
                with pytest.raises(TimeoutError):
                    await second.permit(within=3)
                await first.aclose()
                await second.permit()
                assert limiter.waiting == 1
                limiter.close()
                for wait in (third.near, third.permit):
                    with pytest.raises(LimiterClosed):
                        await wait()

    in_virtual_time(scenario())


def test_who_came_first_passes_first_even_if_a_smaller_call_would_fit():
    async def scenario():
        calls = Calls(await opened(tokens_per_minute=1000))
        await calls.begin(10, 995)
        await calls.begin(1)
        assert calls.begun == [0]
        await asyncio.sleep(61)
        assert calls.begun == [0, 1]
        await calls.give_up()

    in_virtual_time(scenario())


def test_calls_of_both_priorities_begin_in_turn_while_both_wait():
    async def scenario():
        calls = Calls(await opened(most=1))
        await calls.begin(*[1] * 5)
        await calls.begin(*[1] * 3, priority="high")
        for _ in range(8):
            await calls.end(calls.begun[-1])
        assert calls.begun == [0, 5, 1, 6, 2, 7, 3, 4]

    in_virtual_time(scenario())


def test_a_high_call_prepares_and_begins_soon_though_a_long_line_waits():
    async def scenario():
        limiter = await quick()
        calls = Calls(limiter)
        await calls.begin(*[1] * 50)
        with limiter.ticket(1, "high") as high:
            await settle()
            assert high.is_near
            await calls.end(0)
            assert calls.begun == [0, 1]
            await high.permit()
        with pytest.raises(TimeoutError), limiter.ticket(1, "high") as given_up:
            await given_up.permit(within=1)
        await calls.end(1)
        assert calls.begun == [0, 1, 2, 3]
        await calls.give_up()

    in_virtual_time(scenario())


def test_no_more_calls_are_in_flight_than_the_ceiling_and_the_client_allow():
    async def scenario():
        for limiter in (await opened(most=3), await opened(concurrency=3)):
            calls = Calls(limiter)
            await calls.begin(*[1] * 9)
            assert limiter.in_flight == 3
            assert limiter.concurrency_limit == 3
            await calls.end(0, 2, outcome=reply())
            assert calls.begun == [0, 1, 2, 3, 4]
            await calls.give_up()

    in_virtual_time(scenario())


def test_a_share_is_of_every_ceiling():
    async def scenario():
        limiter = await opened(concurrency=8, requests_per_minute=600)
        limiter.set_share(3, 8)
        calls = Calls(limiter)
        await calls.begin(*[1] * 9)
        assert limiter.in_flight == 3
        limiter.set_share(8, 8)
        await settle()
        assert limiter.in_flight == 8
        await calls.give_up()
        limiter.set_share(1, 10)
        limiter.set_ceilings(**{**NONE, "requests_per_minute": 600})
        await asyncio.sleep(120)
        begun = now()
        for _ in range(13):
            async with through(limiter, 1) as permit:
                permit.replied(reply())
        assert now() - begun == pytest.approx(10, abs=0.1), "three at once, then one a second"

    in_virtual_time(scenario())


def test_nobody_passes_without_a_share():
    async def scenario():
        limiter = await opened(concurrency=8)
        limiter.set_share(0, 8)
        calls = Calls(limiter)
        await calls.begin(1)
        await asyncio.sleep(1000)
        assert calls.begun == []
        limiter.set_share(1, 8)
        await settle()
        assert calls.begun == [0]
        await calls.give_up()

    in_virtual_time(scenario())


def test_where_there_are_no_ceilings_there_is_nothing_to_share():
    async def scenario():
        limiter = await opened()
        limiter.set_share(0, 8)
        calls = Calls(limiter)
        await calls.begin(1)
        assert calls.begun == [0]
        await calls.give_up()

    in_virtual_time(scenario())
