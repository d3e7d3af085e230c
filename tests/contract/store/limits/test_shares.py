"""Runners share a limit: together they never have more than all of it, and soon each its part."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.domain.fair_share import fair_shares
from socratic_bench.ports.stores.limits import ShareClaim
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database, StoreAdapter
from tests.contract.store.facts import MONDAY, StoppedClock
from tests.waiting import waiting_for

TERM = 10
TURN = 30
"""Seconds. Parts that cannot be divided are handed on after that long."""

SCOPE = "openai/gpt"


async def _share(
    store: Store,
    owner: str,
    wants: int,
    *,
    total: int = 10,
    scope: str = SCOPE,
) -> int:
    shares = await store.share([ShareClaim(scope, total, wants)], owner, TERM)
    return shares[scope]


async def test_who_is_alone_gets_what_it_wants_up_to_the_total(store: Store) -> None:
    assert await _share(store, "a", 4) == 4
    assert await _share(store, "a", 40) == 10
    assert await _share(store, "a", 2) == 2


@pytest.mark.smoke
async def test_who_comes_late_waits_until_the_other_has_come_down(
    store: Store, other_store: Store
) -> None:
    assert await _share(store, "a", 10) == 10
    assert await _share(other_store, "b", 10) == 0
    assert await _share(store, "a", 10) == 5
    assert await _share(other_store, "b", 10) == 5


async def test_what_one_has_no_use_for_another_gets(store: Store) -> None:
    assert await _share(store, "a", 3) == 3
    assert await _share(store, "b", 10) == 7
    assert await _share(store, "a", 1) == 1
    assert await _share(store, "b", 10) == 9


async def test_what_is_given_back_is_there_for_others_at_once(store: Store) -> None:
    await _share(store, "a", 10)
    assert await _share(store, "a", 0) == 0
    assert await _share(store, "b", 10) == 10
    assert await _share(store, "a", 0) == 0


async def test_the_parts_of_who_is_not_heard_of_again_come_back(
    store: Store, clock: StoppedClock
) -> None:
    await _share(store, "dead", 10)
    clock.pass_by(TERM)
    assert await _share(store, "b", 10) == 0
    clock.pass_by(1)
    assert await _share(store, "b", 10) == 10


async def test_who_claims_after_its_time_ran_out_does_not_get_what_others_have_by_now(
    store: Store, clock: StoppedClock
) -> None:
    await _share(store, "late", 10)
    clock.pass_by(TERM + 1)
    await _share(store, "b", 10)
    assert await _share(store, "late", 10) == 0


async def test_each_limit_is_shared_by_itself(store: Store) -> None:
    claims = [ShareClaim("b", 10, 10), ShareClaim("a", 4, 10), ShareClaim("c", 6, 0)]
    assert await store.share(claims, "one", TERM) == {"b": 10, "a": 4, "c": 0}
    assert await store.share(claims, "two", TERM) == {"b": 0, "a": 0, "c": 0}
    assert await store.share(claims[:1], "one", TERM) == {"b": 5}
    assert await store.share(claims, "two", TERM) == {"b": 5, "a": 0, "c": 0}
    assert await store.share([], "two", TERM) == {}


async def test_a_limit_that_is_lowered_holds_once_the_others_have_come_down(store: Store) -> None:
    await _share(store, "a", 5)
    await _share(store, "b", 5)
    assert await _share(store, "a", 5, total=4) == 0
    assert await _share(store, "b", 5, total=4) == 2
    assert await _share(store, "a", 5, total=4) == 2


async def test_parts_that_cannot_be_divided_are_handed_on_and_others_are_not(
    store: Store, clock: StoppedClock
) -> None:
    seen = set()
    for seconds in range(0, 240, 2):
        clock.time = MONDAY + timedelta(seconds=seconds)
        uneven = [await _share(store, owner, 9, total=1) for owner in "ab"]
        even = [await _share(store, owner, 9, total=2, scope="even") for owner in "ab"]
        if seconds > TURN:
            assert even == [1, 1]
            seen.add(tuple(uneven))
    assert {(1, 0), (0, 1)} <= seen


async def test_of_a_limit_that_is_new_many_at_once_do_not_get_more_than_there_is(
    store: Store, other_store: Store
) -> None:
    for number in range(10):
        shares = await asyncio.gather(
            *(
                _share((store, other_store)[owner % 2], f"{owner}", 6, scope=f"new {number}")
                for owner in range(8)
            )
        )
        assert 6 <= sum(shares) <= 10


async def test_claims_of_several_limits_in_any_order_do_not_wait_crosswise(
    store: Store, other_store: Store
) -> None:
    scopes = [f"limit {number}" for number in range(12)]

    async def claim(number: int) -> None:
        claims = [ShareClaim(scope, 10, 10) for scope in scopes[number:] + scopes[:number]]
        for _ in range(10):
            each = (store, other_store)[number % 2]
            await each.share(claims, f"{number}", TERM)

    async with waiting_for("the claims of twelve runners"):
        await asyncio.gather(*(claim(number) for number in range(12)))


CLAIMS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 12), st.integers(0, 8)), max_size=20
)
"""The claimant, its wish, and the seconds since the last claim."""

WANTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 12), min_size=1)
TOTAL = st.integers(1, 12)


class Limit:
    """One limit, and its owners' shares."""

    def __init__(
        self, stores: Sequence[Store], clock: StoppedClock, scope: str, total: int
    ) -> None:
        self._stores = stores
        self._scope = scope
        self._total = total
        self._clock = clock
        self._parts: dict[str, tuple[int, datetime]] = {}

    async def claim(self, owner: str, wants: int, seconds: int = 0) -> int:
        self._clock.pass_by(seconds)
        store = self._stores[ord(owner) % 2]
        claim = ShareClaim(self._scope, self._total, wants)
        shares = await store.share([claim], owner, TERM)
        until = self._clock.time + timedelta(seconds=TERM)
        self._parts[owner] = shares[self._scope], until
        live = [parts for parts, until in self._parts.values() if until >= self._clock.time]
        assert sum(live) <= self._total
        assert 0 <= shares[self._scope] <= wants
        return shares[self._scope]

    async def settle(self, wants: dict[str, int], orders: Sequence[Sequence[str]]) -> None:
        """All owners claim; after two more claims each has its fair share."""
        for owner in self._parts.keys() - wants.keys():
            await self.claim(owner, 0)
        turn = int(self._clock.time.timestamp()) // 30
        shares: dict[str, int] = {}
        for order in orders:
            shares = {owner: await self.claim(owner, wants[owner]) for owner in order}
        assert shares == fair_shares(self._total, wants, turn)


@st.composite
def _settling(draw: st.DrawFn) -> tuple[dict[str, int], list[list[str]]]:
    wants = draw(WANTS)
    return wants, [draw(st.permutations(sorted(wants))) for _ in range(3)]


@pytest.mark.two_lengths
def test_shares_never_exceed_the_total_and_become_fair(
    adapter: StoreAdapter, database: Database, clock: StoppedClock
) -> None:
    numbers = count()
    with asyncio.Runner() as loop:
        stores = database(clock), database(clock)
        loop.run(stores[0].prepare())

        @settings(max_examples=adapter.examples)
        @given(total=TOTAL, claims=CLAIMS, settling=_settling())
        def hold(
            total: int,
            claims: list[tuple[str, int, int]],
            settling: tuple[dict[str, int], list[list[str]]],
        ) -> None:
            async def play() -> None:
                limit = Limit(stores, clock, f"limit {next(numbers)}", total)
                for owner, wants, seconds in claims:
                    await limit.claim(owner, wants, seconds)
                await limit.settle(*settling)

            loop.run(play())

        try:
            hold()
        finally:
            for store in stores:
                loop.run(store.close())
