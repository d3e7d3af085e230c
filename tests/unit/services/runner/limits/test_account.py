"""Runners that share the limits of an account never use more than there is of them."""

import asyncio
import functools
import random
from contextlib import AsyncExitStack

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.memory.leases import MemorySharedLimits
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.domain.fair_share import fair_shares
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.limits import ShareClaim
from socratic_bench.providers.registry import account_scope
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.sharing import BEAT, MARGIN, VALID, AccountShares
from tests.servers.sqlite import prepared_file
from tests.unit.services.runner.limits.simulated_server import reply, through
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now
from tests.waiting import PATIENCE

MODEL = TutorModel(id="openai/gpt", limits=Limits(concurrency=10))
RATED = TutorModel(id="openai/gpt", limits=Limits(requests_per_minute=600))
FREE = TutorModel(id="openai/free")
SCOPE = account_scope(MODEL)
SECONDS = 3.0
"""How long a call takes at most."""


class Account(MemorySharedLimits):
    """Gives out shares as the store promises to; can be away, or never answer."""

    def __init__(self) -> None:
        super().__init__()
        self.claims = []
        self.parts = {}
        self.wants = {}
        self.is_unavailable = False
        self.is_silent = False

    async def share(self, claims, owner, seconds):
        at, until = now(), now() + seconds
        self.claims.append((at, owner, list(claims)))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_unavailable:
            raise StoreUnavailable("the database is starting up")
        granted = {}
        for scope, total, wants in claims:
            of_scope = {
                other: (parts, wanted, valid)
                for (where, other), (parts, wanted, valid) in self.parts.items()
                if where == scope and other != owner and valid >= at
            }
            fair = fair_shares(
                total, {other: each[1] for other, each in of_scope.items()} | {owner: wants}
            )[owner]
            left = total - sum(parts for parts, _, _ in of_scope.values())
            granted[scope] = max(0, min(fair, left))
            self.parts[scope, owner] = granted[scope], wants, until
        return granted

    def parts_of(self, owner):
        return self.parts[SCOPE, owner][0]


class Runner:
    """Keeps a given number of calls waiting at the limiter of its model."""

    def __init__(self, account, owner, model=MODEL):
        self.limiters = ConcurrencyLimiters(most=250, clock=now)
        self.shares = AccountShares(account, owner, self.limiters)
        self.model = model
        self.chance = random.Random(owner)
        self.answered = []
        self.tasks = []

    @property
    def limiter(self) -> ConcurrencyLimiter:
        return self.limiters.limiter_for(self.model, None)

    async def __aenter__(self):
        await self.shares.__aenter__()
        return self

    async def __aexit__(self, *error):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.shares.__aexit__(*error)

    def keep_calling(self, callers):
        self.tasks += [asyncio.create_task(self._keep_calling()) for _ in range(callers)]

    async def _keep_calling(self):
        while True:
            async with through(self.limiter, 1) as permit:
                await asyncio.sleep(self.chance.uniform(0.5, 1.0) * SECONDS)
                permit.replied(reply())
                self.answered.append(now())


def virtual(test):
    @functools.wraps(test)
    def run():
        in_virtual_time(test())

    return run


@virtual
async def test_the_first_to_wait_does_not_wait_for_the_next_beat():
    account = Account()
    async with Runner(account, "one") as runner:
        await asyncio.sleep(5 * BEAT + 1)
        assert account.claims == [], "there is nothing to share"
        began = now()
        async with through(runner.limiter, 1):
            assert now() == began


@virtual
async def test_nobody_passes_before_the_store_has_granted_anything():
    account = Account()
    account.is_unavailable = True
    async with Runner(account, "one") as runner:
        runner.keep_calling(3)
        await asyncio.sleep(30)
        assert runner.limiter.in_flight == 0
        account.is_unavailable = False
        await asyncio.sleep(BEAT)
        assert runner.limiter.in_flight == 1


@virtual
async def test_a_model_without_ceilings_waits_for_no_share():
    account = Account()
    account.is_unavailable = True
    async with Runner(account, "one", FREE) as runner:
        runner.keep_calling(3)
        await asyncio.sleep(1)
        assert runner.limiter.in_flight == 1
    assert account.claims == []


@virtual
async def test_a_runner_claims_what_it_has_a_use_for_and_no_more_than_there_is():
    account = Account()
    async with Runner(account, "one") as runner:
        runner.keep_calling(3)
        await asyncio.sleep(BEAT * 2)
        assert account.claims[-1][2] == [(SCOPE, 10, 3)]
        runner.keep_calling(50)
        await asyncio.sleep(BEAT * 2)
        assert account.claims[-1][2] == [(SCOPE, 10, 10)]


@virtual
async def test_two_runners_share_evenly_and_one_that_is_alone_has_everything():
    account = Account()
    async with Runner(account, "one") as one:
        one.keep_calling(50)
        await asyncio.sleep(30)
        assert one.limiter.in_flight == 10
        async with Runner(account, "two") as two:
            two.keep_calling(50)
            await asyncio.sleep(30)
            assert (one.limiter.in_flight, two.limiter.in_flight) == (5, 5)
        await asyncio.sleep(BEAT + SECONDS)
        assert one.limiter.in_flight == 10


@virtual
async def test_where_only_rates_are_limited_they_are_shared_by_those_who_have_calls_to_make():
    account = Account()
    async with Runner(account, "one", RATED) as one, Runner(account, "two", RATED) as two:
        one.keep_calling(100)
        await asyncio.sleep(30)
        assert account.parts_of("one") == 1000
        two.keep_calling(100)
        await asyncio.sleep(180)
        assert (account.parts_of("one"), account.parts_of("two")) == (500, 500)
        last = [sum(at > now() - 60 for at in each.answered) for each in (one, two)]
        assert all(280 <= answered <= 300 for answered in last)


@virtual
async def test_who_has_nothing_to_do_leaves_everything_to_the_others():
    account = Account()
    async with Runner(account, "one", RATED) as one, Runner(account, "two", RATED) as two:
        async with through(two.limiter, 1):
            pass
        one.keep_calling(100)
        await asyncio.sleep(3 * BEAT)
        assert (account.parts_of("one"), account.parts_of("two")) == (1000, 0)


@virtual
async def test_while_the_store_is_away_a_share_is_used_only_as_long_as_it_is_certain():
    account = Account()
    async with Runner(account, "one") as runner:
        runner.keep_calling(50)
        await asyncio.sleep(30)
        granted = max(at for at, _, _ in account.claims)
        account.is_unavailable = True
        await asyncio.sleep(granted + VALID - MARGIN - now() - 0.1)
        assert runner.limiter.in_flight == 10
        await asyncio.sleep(0.2 + SECONDS)
        assert runner.limiter.in_flight == 0, "calls that were in flight have ended by now"
        account.is_unavailable = False
        await asyncio.sleep(BEAT)
        assert runner.limiter.in_flight == 10


@virtual
async def test_one_claim_that_is_never_answered_does_not_cost_the_share():
    account = Account()
    async with Runner(account, "one") as runner:
        runner.keep_calling(50)
        await asyncio.sleep(30)
        account.is_silent = True
        await asyncio.sleep(BEAT)
        account.is_silent = False
        for _ in range(200):
            await asyncio.sleep(0.1)
            assert runner.limiter.in_flight == 10


@virtual
async def test_a_store_that_is_away_is_told_once_and_so_is_its_return():
    account = Account()
    account.is_unavailable = True
    with capture_logs() as told:
        async with Runner(account, "one") as runner:
            runner.keep_calling(1)
            await asyncio.sleep(20)
            account.is_unavailable = False
            await asyncio.sleep(20)
    told = [entry for entry in told if entry["log_level"] != "debug"]
    assert [(entry["log_level"], entry.get("reason")) for entry in told] == [
        ("warning", "the database is starting up"),
        ("info", None),
    ]


@virtual
async def test_at_the_end_everything_is_given_back():
    account = Account()
    limiters = ConcurrencyLimiters(most=250, clock=now)
    shares = AccountShares(account, "one", limiters)
    async with AsyncExitStack() as calls:
        async with shares:
            limiter = limiters.limiter_for(MODEL, None)
            permit = await calls.enter_async_context(through(limiter, 1))
            permit.replied(reply())
            assert account.parts_of("one") == 1
        assert account.claims[-1][2] == [(SCOPE, 10, 0)], "though a call is still in flight"
        assert account.parts_of("one") == 0
        assert shares._lapse is None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60), through(limiter, 1):
            pass


@virtual
async def test_a_store_that_never_answers_does_not_hold_up_the_end():
    account = Account()
    async with Runner(account, "one") as runner:
        runner.keep_calling(5)
        await asyncio.sleep(30)
        account.is_silent = True
        began = now()
    assert now() - began <= 5
    await asyncio.sleep(0)


@virtual
async def test_however_many_come_to_wait_the_store_is_not_asked_all_the_time():
    account = Account()
    models = [
        TutorModel(id=f"openai/{number}", limits=Limits(concurrency=1)) for number in range(100)
    ]
    async with Runner(account, "one") as runner, AsyncExitStack() as passing:
        for model in models:
            await passing.enter_async_context(through(runner.limiters.limiter_for(model, None), 1))
        await asyncio.sleep(10)
    assert len(account.claims) <= now() / 0.25 + 2


async def test_runners_share_through_a_real_store(tmp_path):
    store = SqlStore.from_url(await prepared_file(tmp_path / "benchmark.db"))
    one, two = ConcurrencyLimiters(most=250), ConcurrencyLimiters(most=250)
    async with (
        asyncio.timeout(PATIENCE),
        AccountShares(store, "one", one),
        AccountShares(store, "two", two),
    ):
        first, second = one.limiter_for(MODEL, None), two.limiter_for(MODEL, None)
        async with through(first, 1) as permit:
            permit.replied(reply())
        async with through(first, 1), through(second, 1):
            assert (first.in_flight, second.in_flight) == (1, 1)
    assert await store.share([ShareClaim(SCOPE, 10, 10)], "three", 1.0) == {SCOPE: 10}
    await store.close()
