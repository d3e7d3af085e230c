"""A model that pushed back is paused for every runner until the time in the store."""

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import FailureKind
from socratic_bench.providers.registry import account_scope
from socratic_runner.limits.concurrency_limiter import LONG_PAUSE
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.pausing import VALID, BackOff
from socratic_runner.limits.sharing import BEAT, PATIENCE, QUICK_BEAT, SharedPauses
from tests.servers.sqlite import prepared_file
from tests.unit.services.runner.limits.simulated_server import PauseKeeper, failure, reply, through
from tests.unit.services.runner.limits.test_account import virtual
from tests.unit.services.runner.limits.virtual_time import now

MODEL = TutorModel(id="openai/gpt")
SCOPE = account_scope(MODEL)
REFUSED = failure(FailureKind.RATE_LIMITED)
AT_ONCE = 0.1
"""Seconds of a call to the store, both ways."""


class Runner:
    """One of several that share a keeper."""

    def __init__(self, keeper):
        self.limiters = ConcurrencyLimiters(most=250, clock=now, back_off=BackOff(draw=lambda: 1.0))
        self.pauses = SharedPauses(keeper, self.limiters)

    @property
    def limiter(self):
        return self.limiters.limiter_for(MODEL, None)

    async def __aenter__(self):
        await self.pauses.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.pauses.__aexit__(*error)

    async def call(self, outcome=None):
        """Make a call, and return the time at which it was permitted."""
        async with through(self.limiter, 1) as permit:
            began = now()
            if outcome is None:
                permit.replied(reply())
            else:
                permit.failed(outcome)
        return began


@virtual
async def test_the_store_is_asked_before_the_first_call_and_left_alone_without_any():
    keeper = PauseKeeper()
    async with Runner(keeper) as one:
        await asyncio.sleep(5 * BEAT)
        assert keeper.told == []
        assert 0 < await one.call() - 5 * BEAT <= AT_ONCE
        asked = len(keeper.told)
        await asyncio.sleep(5 * BEAT)
        assert len(keeper.told) <= asked + 1, "nobody calls the model any more"


@virtual
async def test_who_starts_while_a_model_is_paused_makes_no_call():
    keeper = PauseKeeper()
    async with Runner(keeper) as one, Runner(keeper) as two:
        began = await one.call(failure(FailureKind.RATE_LIMITED, retry_after=30))
        await asyncio.sleep(AT_ONCE)
        assert await two.call() >= began + 30


@virtual
async def test_a_pause_in_a_row_counts_whoever_was_refused():
    keeper = PauseKeeper()
    async with Runner(keeper) as one, Runner(keeper) as two:
        for runner in (one, two, one, two, one):
            await runner.call(REFUSED)
            await asyncio.sleep(VALID + AT_ONCE)
    assert (keeper.kept[SCOPE].in_a_row, keeper.kept[SCOPE].gap) == (5, 8)


@virtual
async def test_a_reply_to_one_lets_the_others_go_on_soon():
    keeper = PauseKeeper()
    async with Runner(keeper) as one, Runner(keeper) as two:
        for _ in range(4):
            await one.call(REFUSED)
            await asyncio.sleep(AT_ONCE)
        calls = [asyncio.create_task(two.call()) for _ in range(20)]
        calls.insert(0, asyncio.create_task(one.call()))
        times = sorted(await asyncio.gather(*calls))
        assert times[-1] - times[0] <= QUICK_BEAT + 2 * AT_ONCE


@virtual
async def test_one_runner_at_a_time_tries_a_model_that_refused_twice():
    keeper = PauseKeeper()
    async with Runner(keeper) as one, Runner(keeper) as two, Runner(keeper) as three:
        for _ in range(3):
            await one.call(REFUSED)
            await asyncio.sleep(AT_ONCE)

        async def refused(runner):
            return await runner.call(REFUSED)

        times = sorted(await asyncio.gather(*(refused(each) for each in (one, two, three))))
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits == pytest.approx([4, 8], abs=2 * AT_ONCE)


@virtual
async def test_who_cannot_wait_for_a_long_pause_that_another_was_asked_for_is_woken_and_told():
    keeper = PauseKeeper()
    async with Runner(keeper) as one, Runner(keeper) as two:
        async with through(two.limiter, 1):
            with two.limiter.ticket(1) as ticket:
                await one.call(failure(FailureKind.RATE_LIMITED, retry_after=LONG_PAUSE + 100))
                async with asyncio.timeout(BEAT + AT_ONCE):
                    await ticket.near()
        refusal = two.limiter.refusal(100)
        assert refusal.kind == FailureKind.RATE_LIMITED
        assert "the provider's words" in str(refusal)
        assert two.limiter.refusal(200) is None


@virtual
async def test_while_the_store_is_away_each_runner_goes_by_what_it_is_told_itself():
    keeper = PauseKeeper()
    keeper.is_unavailable = True
    with capture_logs() as told:
        async with Runner(keeper) as one:
            assert await one.call(REFUSED) <= AT_ONCE
            first, second = await one.call(REFUSED), await one.call()
            assert second - first == pytest.approx(1, abs=AT_ONCE)
            keeper.is_unavailable = False
            call = asyncio.create_task(one.call(REFUSED))
            await asyncio.sleep(2 * BEAT)
            await call
    assert keeper.kept[SCOPE].reason == "the provider's words"
    said = [each for each in told if each["log_level"] != "debug"]
    assert [(each["log_level"], each.get("reason")) for each in said] == [
        ("warning", "the database is starting up"),
        ("info", None),
    ]


@virtual
async def test_a_store_that_never_answers_holds_up_the_first_call_for_a_moment_only():
    keeper = PauseKeeper()
    keeper.is_silent = True
    async with Runner(keeper) as one:
        assert await one.call() <= PATIENCE + AT_ONCE
        began = now()
    assert now() - began <= AT_ONCE


@virtual
async def test_a_model_that_is_called_all_the_time_is_asked_about_once_a_beat():
    keeper = PauseKeeper()
    async with Runner(keeper) as one:
        for _ in range(1000):
            await one.call()
            await asyncio.sleep(0.1)
    assert len(keeper.told) <= 100 / BEAT + 2


async def test_runners_share_the_pauses_of_a_real_store(tmp_path):
    store = SqlStore.from_url(await prepared_file(tmp_path / "benchmark.db"))
    one, two = ConcurrencyLimiters(most=250), ConcurrencyLimiters(most=250)
    async with (
        asyncio.timeout(PATIENCE),
        SharedPauses(store, one),
        SharedPauses(store, two),
    ):
        loop = asyncio.get_running_loop()
        async with through(one.limiter_for(MODEL, None), 1) as permit:
            refused = loop.time()
            permit.failed(failure(FailureKind.RATE_LIMITED, retry_after=1))
        async with through(one.limiter_for(MODEL, None), 1):
            pass
        assert loop.time() - refused >= 1
        async with through(two.limiter_for(MODEL, None), 1) as permit:
            permit.failed(failure(FailureKind.RATE_LIMITED))
    await store.close()


@virtual
async def test_who_rested_for_a_moment_goes_on_for_longer_than_what_it_knows_is_valid():
    keeper = PauseKeeper()
    async with Runner(keeper) as one:
        await one.call()
        await asyncio.sleep(2 * BEAT)  # the store is not asked any more, and its answer is valid

        async def call_for_a_second():
            async with through(one.limiter, 1) as permit:
                await asyncio.sleep(1)
                permit.replied(reply())

        async with asyncio.timeout(10 * VALID):
            await asyncio.gather(*(call_for_a_second() for _ in range(100)))
