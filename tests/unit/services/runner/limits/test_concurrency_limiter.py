"""The limiter: no call passes too early, waits too long, or is forgotten."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.errors import FailureKind, SocraticBenchError
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.pauses.pausing import BackOff
from socratic_runner.limits.ticket import LimiterClosed
from tests.unit.services.runner.limits.simulated_server import TOKENS, failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now

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

    async def begin(self, *tokens: int) -> None:
        for amount in tokens:
            number = len(self.tasks)
            self.tasks.append(asyncio.create_task(self._call(number, amount)))
        await settle()

    async def end(self, *numbers: int, outcome: object = None) -> None:
        for number in numbers:
            self._ends[number].set_result(outcome)
        await settle()

    async def give_up(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _call(self, number: int, tokens: int) -> None:
        async with through(self.limiter, tokens) as permit:
            self.begun.append(number)
            end = self._ends[number] = asyncio.get_running_loop().create_future()
            outcome = await end
            if isinstance(outcome, SocraticBenchError):
                permit.failed(outcome)
            elif outcome is not None:
                permit.replied(outcome)


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
    async with AsyncExitStack() as line:
        tickets = [await line.enter_async_context(limiter.ticket(each)) for each in tokens]
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
            async with limiter.ticket(1) as second, limiter.ticket(1) as third:
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
                permit.replied(outcome) if outcome == reply() else permit.failed(outcome)
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


@settings(max_examples=200)
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
