"""A provider that pushes back pauses the calls to its model, and lowers its limit."""

import asyncio
from itertools import pairwise

import pytest

from socratic_bench.errors import FailureKind
from socratic_bench.ports.models import Reply
from tests.unit.services.runner.limits.concurrency_limiter.calls import Calls, opened, settle
from tests.unit.services.runner.limits.simulated_server import failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now


def test_a_retry_after_pauses_everybody_until_the_latest_and_calls_in_flight_go_on():
    async def scenario():
        calls = Calls(await opened())
        await calls.begin(1, 1, 1, 1)
        start = now()
        await calls.end(0, outcome=failure(FailureKind.RATE_LIMITED, retry_after=30))
        await calls.end(1, outcome=failure(FailureKind.OVERLOADED, retry_after=10))
        await calls.begin(1)
        await asyncio.sleep(20)
        await calls.end(2, outcome=reply())
        assert calls.begun == [0, 1, 2, 3]
        await asyncio.sleep(start + 30 - now())
        await settle()
        assert calls.begun == [0, 1, 2, 3, 4]
        await calls.give_up()

    in_virtual_time(scenario())


@pytest.mark.parametrize("kind", FailureKind)
def test_a_busy_provider_that_does_not_say_how_long_pauses_everybody_for_a_while(kind):
    async def scenario():
        calls = Calls(await opened())
        await calls.begin(1, 1)
        await calls.end(0, outcome=failure(kind))
        await calls.begin(1)
        is_busy = kind in {"rate_limited", "overloaded", "unreachable"}
        assert calls.begun == ([0, 1] if is_busy else [0, 1, 2])
        await asyncio.sleep(0.51)
        assert calls.begun == [0, 1, 2]
        await calls.give_up()

    in_virtual_time(scenario())


def test_pauses_in_a_row_are_each_twice_as_long_until_a_reply():
    async def scenario():
        limiter = await opened()
        began = []
        for outcome in [failure(FailureKind.OVERLOADED)] * 5 + [reply()] * 2:
            async with through(limiter, 1) as permit:
                began.append(now())
                if isinstance(outcome, Reply):
                    permit.replied(outcome)
                else:
                    permit.failed(outcome)
        waits = [later - earlier for earlier, later in pairwise(began)]
        assert waits[:5] == pytest.approx([0.5, 1, 2, 4, 8])
        assert waits[5] == 0
        async with through(limiter, 1) as permit:
            permit.failed(failure(FailureKind.OVERLOADED))
            began.append(now())
        async with through(limiter, 1):
            assert now() - began[-1] == pytest.approx(0.5)

    in_virtual_time(scenario())


def test_calls_in_flight_that_are_refused_together_are_one_push_back():
    async def scenario():
        calls = Calls(await opened())
        await calls.begin(*[1] * 5)
        await calls.end(0, 1, 2, 3, outcome=failure(FailureKind.RATE_LIMITED))
        await calls.begin(1, 1)
        await asyncio.sleep(0.49)
        assert calls.begun == [0, 1, 2, 3, 4]
        await asyncio.sleep(0.02)
        assert calls.begun == [0, 1, 2, 3, 4, 5, 6]
        await calls.give_up()

    in_virtual_time(scenario())


def test_after_a_second_push_back_in_a_row_one_call_after_the_other_tries_until_a_reply():
    async def scenario():
        calls = Calls(await opened())
        for number in (0, 1):
            await calls.begin(1)
            await calls.end(number, outcome=failure(FailureKind.OVERLOADED))
            await asyncio.sleep(0.6)
        await calls.begin(*[1] * 4)
        assert calls.begun == [0, 1]
        await asyncio.sleep(0.5)
        assert calls.begun == [0, 1, 2]
        await asyncio.sleep(1)
        assert calls.begun == [0, 1, 2, 3], "another one tries if the first takes its time"
        await calls.end(2, outcome=reply())
        assert calls.begun == [0, 1, 2, 3, 4, 5]
        await calls.give_up()

    in_virtual_time(scenario())


def test_a_call_that_is_not_made_after_all_leaves_its_turn_to_the_next():
    async def scenario():
        limiter = await opened()
        for _ in range(2):
            async with through(limiter, 1) as permit:
                permit.failed(failure(FailureKind.OVERLOADED))
        async with through(limiter, 1):
            start = now()  # let through, and not made
        async with through(limiter, 1) as permit:
            assert now() == start
            permit.replied(reply())

    in_virtual_time(scenario())


def test_a_run_that_cannot_wait_for_as_long_as_a_provider_asks_is_told_so():
    async def scenario():
        limiter = await opened()
        async with through(limiter, 1) as permit:
            permit.failed(failure(FailureKind.RATE_LIMITED, retry_after=500))
        assert limiter.refusal(600) is None
        refusal = limiter.refusal(400)
        assert (refusal.kind, refusal.retryable) == (FailureKind.RATE_LIMITED, False)
        assert str(refusal) == "not called: paused for 500 s more after the provider's words"
        await asyncio.sleep(101)
        assert limiter.refusal(400) is None

    in_virtual_time(scenario())


@pytest.mark.parametrize("kind", FailureKind)
def test_only_a_busy_provider_and_a_timeout_lower_the_limit(kind):
    async def scenario():
        limiter = await opened()
        before = limiter.concurrency_limit
        async with through(limiter, 1) as permit:
            permit.failed(failure(kind))
        assert (limiter.concurrency_limit < before) == (
            kind in {"rate_limited", "overloaded", "unreachable", "timeout"}
        )

    in_virtual_time(scenario())
