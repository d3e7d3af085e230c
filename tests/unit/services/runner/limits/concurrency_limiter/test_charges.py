"""A call takes tokens and requests from the ceilings, and returns its unneeded part."""

import asyncio

import pytest

from socratic_bench.errors import FailureKind
from tests.unit.services.runner.limits.concurrency_limiter.calls import Calls, a_limiter, opened
from tests.unit.services.runner.limits.simulated_server import failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now


def test_tokens_that_were_not_needed_are_for_others_at_once():
    async def scenario():
        calls = Calls(await opened(tokens_per_minute=1000))
        await calls.begin(1000, 40)
        assert calls.begun == [0]
        await calls.end(0, outcome=reply(read=6, written=4))
        assert calls.begun == [0, 1]
        await calls.give_up()

    in_virtual_time(scenario())


def test_a_reply_that_does_not_say_what_it_took_counts_as_announced():
    async def scenario():
        calls = Calls(await opened(tokens_per_minute=1000))
        await calls.begin(1000, 40)
        await calls.end(0, outcome=reply(read=None, written=4))
        assert calls.begun == [0]
        await calls.give_up()

    in_virtual_time(scenario())


@pytest.mark.parametrize("kind", FailureKind)
def test_tokens_come_back_unless_the_model_may_have_written_something(kind):
    async def scenario():
        calls = Calls(await opened(tokens_per_minute=1000))
        await calls.begin(1000, 40)
        await calls.end(0, outcome=failure(kind))
        await asyncio.sleep(0.51)  # a busy provider is left alone for so long
        may_have_written = {"timeout", "cut_stream", "malformed_reply", "unknown"}
        assert calls.begun == ([0] if kind in may_have_written else [0, 1])
        await calls.give_up()

    in_virtual_time(scenario())


def test_a_call_that_was_not_made_takes_nothing_and_teaches_nothing():
    async def scenario():
        limiter = a_limiter(requests_per_minute=1, tokens_per_minute=10)
        for _ in range(5):
            async with through(limiter, 10):
                pass
        assert now() == 0
        assert limiter.concurrency_limit == 1

    in_virtual_time(scenario())


def test_a_call_that_was_cancelled_may_have_been_made_and_counts():
    async def scenario():
        calls = Calls(a_limiter(requests_per_minute=1))
        await calls.begin(10)
        await calls.give_up()
        async with through(calls.limiter, 10):
            assert now() == 60
        assert calls.limiter.concurrency_limit == 1

    in_virtual_time(scenario())


def test_a_call_larger_than_the_ceiling_of_tokens_does_not_wait_for_ever():
    async def scenario():
        limiter = a_limiter(tokens_per_minute=100)
        for expected in (0, 360, 720):
            async with through(limiter, 600) as permit:
                assert now() == pytest.approx(expected, abs=10)
                permit.replied(reply(read=300, written=300))

    in_virtual_time(scenario())
