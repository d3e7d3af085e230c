"""Models that count towards the same limit of an account share a limiter, and no others do."""

import asyncio

import pytest

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.errors import FailureKind
from socratic_bench.providers.registry import account_scope
from socratic_runner.limits.ceilings import MINUTE, Ceilings
from socratic_runner.limits.concurrency_limiter import LONGEST_OVERDRAFT
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.ticket import LimiterClosed
from tests.unit.services.runner.limits.simulated_server import failure, reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now

OTHER = TutorModel(id="openai/gpt-mini")
MODEL = TutorModel(id="openai/gpt", limits=Limits(concurrency=4, requests_per_minute=60))


def test_a_scope_is_the_model_and_where_it_is():
    elsewhere = MODEL.model_copy(update={"base_url": "https://proxy.example/v1"})
    assert account_scope(MODEL) == "openai/gpt at https://api.openai.com/v1"
    assert account_scope(elsewhere) == "openai/gpt at https://proxy.example/v1"
    assert account_scope(TutorModel(id="reference/socratic")) == "reference/socratic"


def test_an_address_that_is_spelled_out_is_the_same_as_the_providers_own():
    spelled_out = MODEL.model_copy(update={"base_url": "https://api.openai.com/v1/"})
    assert account_scope(spelled_out) == account_scope(MODEL)


def test_options_prices_and_limits_make_no_other_scope():
    other = MODEL.model_copy(update={"options": {"seed": 1}, "limits": Limits(), "name": "GPT"})
    limiters = ConcurrencyLimiters(most=9)
    assert limiters.limiter_for(other, None) is limiters.limiter_for(MODEL, None)


def test_other_models_have_other_limiters():
    limiters = ConcurrencyLimiters(most=9)
    assert limiters.limiter_for(OTHER, None) is not limiters.limiter_for(MODEL, None)
    assert [scope for scope, _ in limiters] == [account_scope(OTHER), account_scope(MODEL)]


def test_the_ceilings_are_those_of_the_model_given_last():
    limiters = ConcurrencyLimiters(most=9)
    limiter = limiters.limiter_for(MODEL, None)
    assert limiter.ceilings == Ceilings(4, 60, None)
    limiters.limiter_for(MODEL.model_copy(update={"limits": Limits(tokens_per_minute=100)}), None)
    assert limiter.ceilings == Ceilings(None, None, 100)


@pytest.mark.parametrize(
    ("most", "client", "configured", "expected"),
    [(9, None, None, 9), (9, 2, None, 2), (9, 5, 3, 3), (9, 3, 5, 3), (2, 5, 5, 2)],
)
async def test_the_lowest_of_all_limits_holds(most, client, configured, expected):
    limiters = ConcurrencyLimiters(most=most)
    model = MODEL.model_copy(update={"limits": Limits(concurrency=configured)})
    assert await calls_at_once(limiters.limiter_for(model, client)) == expected


async def test_what_a_client_can_do_at_once_is_no_part_of_what_is_shared():
    limiters = ConcurrencyLimiters(most=9)
    limiter = limiters.limiter_for(MODEL.model_copy(update={"limits": Limits()}), 2)
    assert not limiter.ceilings.exist


async def test_where_shares_are_given_out_a_new_limiter_has_none_of_its_ceilings():
    limiters = ConcurrencyLimiters(most=9)
    limiters.share_out(lambda: None)
    assert await calls_at_once(limiters.limiter_for(MODEL, None)) == 0
    free = limiters.limiter_for(TutorModel(id="openai/free"), None)
    assert await calls_at_once(free) > 0


async def test_closing_closes_every_limiter_and_those_to_come():
    limiters = ConcurrencyLimiters(most=9)
    there = limiters.limiter_for(MODEL, None)
    limiters.close()
    for limiter in (there, limiters.limiter_for(TutorModel(id="openai/new"), None)):
        with pytest.raises(LimiterClosed):
            async with through(limiter, 1):
                pass


async def calls_at_once(limiter) -> int:
    """How many calls a limiter lets through at once, after a first one that was answered."""
    hold = asyncio.Event()
    begun = []

    async def make():
        async with through(limiter, 1) as permit:
            begun.append(permit)
            permit.replied(reply())
            await hold.wait()

    tasks = [asyncio.create_task(make()) for _ in range(30)]
    for _ in range(100):
        await asyncio.sleep(0)
    at_once = limiter.in_flight
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return at_once


def test_a_limiter_at_rest_is_forgotten_unless_a_client_uses_it():
    limiters = ConcurrencyLimiters(most=9)
    used = limiters.limiter_for(MODEL, None)
    unused = limiters.limiter_for(OTHER, None)
    limiters.forget_unused([used])
    assert limiters.limiter_for(MODEL, None) is used
    assert limiters.limiter_for(OTHER, None) is not unused
    assert dict(limiters.with_model_ids()).keys() == {MODEL.id, OTHER.id}


def test_a_limiter_with_calls_or_a_minute_that_counts_them_is_kept():
    async def scenario():
        limiters = ConcurrencyLimiters(most=1, clock=now)
        limiter = limiters.limiter_for(MODEL, None)

        def is_kept() -> bool:
            limiters.forget_unused([])
            return limiter in dict(limiters).values()

        async with through(limiter, 1):
            await asyncio.sleep(2 * MINUTE)
            assert is_kept()
            with limiter.ticket(1):
                assert limiter.waiting
                assert is_kept()
        async with through(limiter, 1):
            pass
        await asyncio.sleep(MINUTE - 1)
        assert is_kept()
        await asyncio.sleep(1)
        assert not is_kept()

    in_virtual_time(scenario())


def test_a_limiter_is_kept_until_its_pause_is_over():
    async def scenario():
        limiters = ConcurrencyLimiters(most=1, clock=now)
        limiter = limiters.limiter_for(MODEL, None)
        async with through(limiter, 1) as permit:
            permit.failed(failure(FailureKind.RATE_LIMITED, retry_after=2 * MINUTE))
        await asyncio.sleep(2 * MINUTE - 1)
        limiters.forget_unused([])
        assert dict(limiters)
        await asyncio.sleep(1)
        limiters.forget_unused([])
        assert not dict(limiters)

    in_virtual_time(scenario())


def test_a_limiter_is_kept_while_its_rate_is_overdrawn():
    async def scenario():
        limiters = ConcurrencyLimiters(most=1, clock=now)
        model = OTHER.model_copy(update={"limits": Limits(tokens_per_minute=100)})
        limiter = limiters.limiter_for(model, None)
        async with through(limiter, 300) as permit:
            permit.replied(reply(read=200, written=100))
        await asyncio.sleep(2 * MINUTE)
        limiters.forget_unused([])
        assert dict(limiters)
        limiter.set_share(0, 1)
        await asyncio.sleep(LONGEST_OVERDRAFT)
        limiters.forget_unused([])
        assert not dict(limiters)

    in_virtual_time(scenario())
