"""However claims, responses and releases follow each other, the books are right."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from socratic_bench.domain.run import Run
from socratic_bench.ports.store import Claim, Leases, Spending, Store, TurnKey
from tests.contract.store.adapters import Database
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment
from tests.lengths import at_length

LEASE_MINUTES = 3
TURNS = 4


class Lease(NamedTuple):
    owner: str
    reserves: tuple[tuple[int, int], ...]
    """Of which turn how much."""


class Record(NamedTuple):
    turn: int
    cost: int | None


class Release(NamedTuple):
    owner: str
    turns: frozenset[int]
    paid: bool


class Wait(NamedTuple):
    minutes: int


class Budget(NamedTuple):
    amount: int | None


Step: TypeAlias = Lease | Record | Release | Wait | Budget

_TURN = st.integers(0, TURNS - 1)
_OWNER = st.sampled_from("abc")
_AMOUNT = st.integers(0, 6)
_CLAIMS = st.lists(st.tuples(_TURN, _AMOUNT), max_size=TURNS, unique_by=lambda claim: claim[0])
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(Lease, _OWNER, _CLAIMS.map(tuple)),
        st.builds(Record, _TURN, st.none() | _AMOUNT),
        st.builds(Release, _OWNER, st.frozensets(_TURN), st.booleans()),
        st.builds(Wait, st.integers(1, 2 * LEASE_MINUTES)),
        st.builds(Budget, st.none() | st.integers(0, 20)),
    ),
    max_size=25,
)


@dataclass
class Call:
    """One call that was begun."""

    owner: str
    until: int
    reserve: int
    """What is committed for it; nothing once it was settled or released."""

    waited_for: bool = True


@dataclass
class Books:
    """What the store has to say, kept call by call."""

    budget: int | None
    now: int = 0
    calls: dict[int, list[Call]] = field(default_factory=lambda: {n: [] for n in range(TURNS)})
    costs: dict[int, int | None] = field(default_factory=dict)
    """By answered turn."""

    @property
    def committed(self) -> int:
        reserved = sum(call.reserve for calls in self.calls.values() for call in calls)
        return reserved + sum(cost or 0 for cost in self.costs.values())

    @property
    def spending(self) -> Spending:
        latest = [calls[-1] for calls in self.calls.values() if calls]
        in_flight = sum(
            call.reserve for call in latest if call.waited_for and call.until >= self.now
        )
        return Spending(self.budget, self.committed, in_flight, exhausted=False)

    def lease(self, step: Lease) -> tuple[set[int], set[int]]:
        granted, over_budget = set(), set()
        for turn, reserve in step.reserves:
            latest = self.calls[turn][-1:]
            held = any(call.owner != step.owner and call.until >= self.now for call in latest)
            if turn in self.costs or held:
                continue
            if reserve and self.budget is not None and self.committed + reserve > self.budget:
                over_budget.add(turn)
            else:
                self.calls[turn].append(Call(step.owner, self.now + LEASE_MINUTES, reserve))
                granted.add(turn)
        return granted, over_budget

    def record(self, step: Record) -> None:
        if step.turn in self.costs:
            return
        self.costs[step.turn] = step.cost
        for call in self.calls[step.turn][-1:]:
            if step.cost is not None and call.waited_for:
                call.reserve = 0
            call.waited_for = False

    def release(self, step: Release) -> None:
        for turn in step.turns:
            for call in self.calls[turn][-1:]:
                if call.owner == step.owner and call.waited_for:
                    call.waited_for = False
                    call.reserve = call.reserve if step.paid else 0


class Play:
    """Steps done both by the books and by stores that take turns."""

    def __init__(self, stores: tuple[Store, Store], occasion: str, budget: int | None) -> None:
        self._stores = stores
        self._occasion = occasion
        self._books = Books(budget)
        self._runs: list[Run] = []

    async def play(self, steps: Iterable[Step]) -> None:
        experiment = an_experiment(occasion=self._occasion, budget=self._books.budget)
        await self._stores[0].register(experiment)
        self._runs = list(experiment.runs())
        for number, step in enumerate(steps):
            before = self._books.committed
            await self._do(self._stores[number % 2], step)
            spending = await self._stores[0].spending(
                experiment.experiment_id, MONDAY + self._books.now * MINUTE
            )
            assert spending == self._books.spending, step
            if isinstance(step, Lease) and spending.budget is not None:
                assert spending.committed <= max(spending.budget, before)

    async def _do(self, store: Store, step: Step) -> None:
        id_ = self._runs[0].experiment_id
        now = MONDAY + self._books.now * MINUTE
        match step:
            case Lease(owner, reserves):
                claims = [Claim(self._key(turn), reserve) for turn, reserve in reserves]
                leases = await store.lease(id_, claims, owner, now, now + LEASE_MINUTES * MINUTE)
                granted, over_budget = self._books.lease(step)
                assert leases == Leases(self._keys(granted), self._keys(over_budget))
            case Record(turn, cost):
                await store.record([a_response(self._runs[turn], cost=cost)])
                self._books.record(step)
            case Release(owner, turns, paid):
                await store.release(id_, self._keys(turns), owner, paid=paid)
                self._books.release(step)
            case Wait(minutes):
                self._books.now += minutes
            case Budget(amount):
                await store.register(an_experiment(occasion=self._occasion, budget=amount))
                self._books.budget = amount

    def _key(self, turn: int) -> TurnKey:
        return TurnKey(self._runs[turn].run_id, 1)

    def _keys(self, turns: Iterable[int]) -> frozenset[TurnKey]:
        return frozenset(map(self._key, turns))


@pytest.mark.two_lengths
def test_after_every_step_the_spending_is_what_the_calls_add_up_to(database: Database) -> None:
    numbers = count()
    with asyncio.Runner() as loop:
        stores = database(), database()
        loop.run(stores[0].prepare())

        @settings(max_examples=at_length(50, 150), deadline=None)
        @given(budget=st.none() | st.integers(0, 20), steps=STEPS)
        @example(
            budget=9,
            steps=[
                Lease("a", ((0, 4), (1, 4))),
                Wait(LEASE_MINUTES + 1),
                Lease("b", ((0, 4), (1, 1))),
                Record(1, 1),
                Release("a", frozenset({0, 1}), paid=False),
                Lease("b", ((0, 4),)),
            ],
        )
        def hold(budget: int | None, steps: list[Step]) -> None:
            loop.run(Play(stores, f"example {next(numbers)}", budget).play(steps))

        try:
            hold()
        finally:
            for store in stores:
                loop.run(store.close())
