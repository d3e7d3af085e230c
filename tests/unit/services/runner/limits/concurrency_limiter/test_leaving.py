"""Cancelled and rejected callers leave nothing behind, and no caller waits for ever."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.errors import FailureKind
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.ticket import LimiterClosed
from tests.lengths import at_length
from tests.unit.services.runner.limits.concurrency_limiter.calls import (
    NONE,
    Calls,
    a_limiter,
    opened,
    settle,
)
from tests.unit.services.runner.limits.simulated_server import failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now


def test_a_closed_limiter_turns_away_who_waits_and_who_comes_and_ends_no_call():
    async def scenario():
        calls = Calls(await opened(concurrency=1))
        await calls.begin(1, 1, 1)
        calls.limiter.close()
        await settle()
        assert [type(task.exception()) for task in calls.tasks[1:]] == [
            LimiterClosed,
            LimiterClosed,
        ]
        with pytest.raises(LimiterClosed):
            async with through(calls.limiter, 1):
                pass
        await calls.end(0, outcome=reply())
        assert calls.tasks[0].done()
        assert (calls.limiter.in_flight, calls.limiter.waiting) == (0, 0)

    in_virtual_time(scenario())


def test_the_place_of_one_who_is_cancelled_goes_to_the_next():
    async def scenario():
        calls = Calls(await opened(concurrency=1))
        await calls.begin(1, 1, 1)
        calls.tasks[1].cancel()
        await settle()
        assert calls.limiter.waiting == 1
        await calls.end(0, outcome=reply())
        assert calls.begun == [0, 2]
        await calls.give_up()

    in_virtual_time(scenario())


def test_a_large_call_that_is_cancelled_holds_up_the_small_ones_no_longer():
    async def scenario():
        calls = Calls(await opened(tokens_per_minute=1000))
        await calls.begin(960, 1000, 40)
        await asyncio.sleep(59)
        assert calls.begun == [0]
        calls.tasks[1].cancel()
        await settle()
        assert calls.begun == [0, 2]
        await calls.give_up()

    in_virtual_time(scenario())


def test_one_who_is_cancelled_just_as_it_is_let_through_gives_its_permit_back():
    async def scenario():
        calls = Calls(await opened(concurrency=1, requests_per_minute=100))
        await calls.begin(1, 1, 1)
        calls._ends[0].set_result(reply())
        await asyncio.sleep(0)
        assert (calls.limiter.waiting, calls.begun) == (1, [0]), "let through, but not running yet"
        calls.tasks[1].cancel()
        await settle()
        assert calls.begun == [0, 2]
        assert calls.limiter.in_flight == 1
        await calls.give_up()
        assert calls.limiter.in_flight == 0

    in_virtual_time(scenario())


def test_one_who_is_cancelled_just_as_the_limiter_closes_leaves_no_complaint():
    async def scenario():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )
        calls = Calls(await opened(concurrency=1))
        await calls.begin(1, 1, 1)
        calls.tasks[1].cancel()
        calls.limiter.close()
        calls.tasks[2].cancel()
        await settle()
        assert [task.cancelled() for task in calls.tasks] == [False, True, True]
        await calls.give_up()
        del calls
        return complaints

    assert in_virtual_time(scenario()) == []


def test_it_sets_no_timer_while_nobody_waits():
    async def scenario():
        limiter = await opened(requests_per_minute=60)
        async with AsyncExitStack() as passing:
            for _ in range(3):
                await passing.enter_async_context(through(limiter, 1))
            waiting = asyncio.create_task(passing.enter_async_context(through(limiter, 1)))
            await settle()
            timer = limiter._timer
            assert not timer.cancelled()
            waiting.cancel()
            await settle()
            assert timer.cancelled()
            assert limiter._timer is None

    in_virtual_time(scenario())


def test_somebody_is_told_when_the_first_comes_to_wait_before_ceilings():
    async def scenario():
        told = []
        limiter = ConcurrencyLimiter(
            most=1, clock=now, on_waiting=lambda: told.append(limiter.waiting)
        )
        calls = Calls(limiter)
        await calls.begin(1, 1, 1)
        assert told == []
        await calls.give_up()
        limiter.set_ceilings(**{**NONE, "concurrency": 1})
        calls = Calls(limiter)
        await calls.begin(1, 1, 1)
        assert told == [1]
        await calls.give_up()

    in_virtual_time(scenario())


CEILINGS = st.fixed_dictionaries(
    {
        "concurrency": st.none() | st.integers(1, 5),
        "requests_per_minute": st.none() | st.integers(1, 120),
        "tokens_per_minute": st.none() | st.integers(1, 600),
    }
)
CALLS = st.tuples(
    st.floats(0, 20),  # when it comes
    st.integers(0, 700),  # the tokens it announces
    st.floats(0, 30),  # how long it takes
    st.sampled_from(["reply", "rate_limited", "timeout", "auth", "pause", "nothing", "cancel"]),
)


@settings(max_examples=at_length(20, 60))
@given(CEILINGS, CEILINGS, st.lists(CALLS, max_size=30))
def test_everybody_passes_in_the_end_or_is_gone_and_nothing_is_left(first, second, calls):
    async def make(limiter, come, tokens, takes, outcome):
        await asyncio.sleep(come)
        async with through(limiter, tokens) as permit:
            assert limiter.in_flight <= (limiter.ceilings.concurrency or 100) or changed
            await asyncio.sleep(takes)
            if outcome == "reply":
                permit.replied(reply(read=tokens // 2, written=tokens // 4))
            elif outcome == "pause":
                permit.failed(failure(FailureKind.RATE_LIMITED, retry_after=takes))
            elif outcome != "nothing":
                permit.failed(failure(outcome))

    changed = False

    async def scenario():
        nonlocal changed
        limiter = a_limiter(**first)
        tasks = [asyncio.create_task(make(limiter, *call)) for call in calls]
        for task, (come, _, takes, outcome) in zip(tasks, calls, strict=True):
            if outcome == "cancel":
                asyncio.get_running_loop().call_later(come + takes / 2, task.cancel)
        await asyncio.sleep(15)
        changed = True
        limiter.set_ceilings(**second)
        limiter.set_share(1, 2)
        await asyncio.sleep(5)
        limiter.set_share(1, 1)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            assert result is None or type(result) is asyncio.CancelledError, result
        assert (limiter.in_flight, limiter.waiting, limiter._timer) == (0, 0, None)

    in_virtual_time(scenario())
