"""The ledger is right in any order of claims, replies and endings, and after any repetition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from socratic_bench.domain.leasing import DEAD_AFTER_SECONDS, LeaseAnswer
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Lease, LeaseKey, Spending
from socratic_bench.ports.stores.responses import NO_LEASE
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database, StoreAdapter
from tests.contract.store.facts import StoppedClock, a_response, an_experiment, claim_of

TURNS = 4


class Take(NamedTuple):
    owner: str
    wanted: tuple[tuple[int, int, int], ...]
    """Of which turn, how much, and for how many seconds."""


class Reply(NamedTuple):
    lease: int
    """Which of the leases that were claimed so far, counted around."""

    cost: int | None


class Unleased(NamedTuple):
    turn: int
    cost: int | None


class End(NamedTuple):
    leases: frozenset[int]
    billed: bool


class GiveBack(NamedTuple):
    leases: frozenset[int]


class Beat(NamedTuple):
    owner: str


class Leave(NamedTuple):
    owner: str


class LeaveOthers(NamedTuple):
    owner: str


class Wait(NamedTuple):
    seconds: int


class Budget(NamedTuple):
    amount: int | None


Step: TypeAlias = (
    Take | Reply | Unleased | End | GiveBack | Beat | Leave | LeaveOthers | Wait | Budget
)

_TURN = st.integers(0, TURNS - 1)
_OWNER = st.sampled_from("abc")
_AMOUNT = st.integers(0, 6)
_COST = st.none() | _AMOUNT
_LEASE = st.integers(0, 12)
_WANTED = st.lists(
    st.tuples(_TURN, _AMOUNT, st.integers(1, 60)),
    max_size=TURNS,
    unique_by=lambda wanted: wanted[0],
)
STEPS: st.SearchStrategy[list[tuple[Step, int]]] = st.lists(
    st.tuples(
        st.one_of(
            st.builds(Take, _OWNER, _WANTED.map(tuple)),
            st.builds(Take, _OWNER, _WANTED.map(tuple)),
            st.builds(Reply, _LEASE, _COST),
            st.builds(Unleased, _TURN, _COST),
            st.builds(End, st.frozensets(_LEASE, max_size=3), st.booleans()),
            st.builds(GiveBack, st.frozensets(_LEASE, max_size=3)),
            st.builds(Beat, _OWNER),
            st.builds(Leave, _OWNER),
            st.builds(LeaveOthers, _OWNER),
            st.builds(Wait, st.integers(1, 40)),
            st.builds(Budget, st.none() | st.integers(0, 20)),
        ),
        st.integers(1, 2),
    ),
    max_size=25,
)
"""The operation and its number of repetitions: two if the first answer was lost."""


@dataclass
class Granted:
    """One lease that was granted, and is not over."""

    key: LeaseKey
    owner: str
    until: float
    reserve: int


@dataclass
class Books:
    """The expected answers of the store, kept lease by lease."""

    budget: int | None
    now: float = 0
    granted: dict[LeaseKey, Granted] = field(default_factory=dict)
    """By their keys, in their order; of one turn the last is the one that holds it."""

    kept: int = 0
    """The spent money, including possible bills."""

    paid: int = 0
    """The part of it that is known."""

    answered: set[str] = field(default_factory=set)
    """By run."""

    calls: dict[str, int] = field(default_factory=dict)
    """By run."""

    seen: dict[str, float] = field(default_factory=dict)
    """When each owner was heard of; before everything if it has left."""

    holding: dict[str, LeaseKey] = field(default_factory=dict)
    """The latest lease of each run."""

    @property
    def committed(self) -> int:
        return self.kept + sum(lease.reserve for lease in self.granted.values())

    @property
    def spending(self) -> Spending:
        open_ = [self._open(run_id) for run_id in self.holding]
        in_flight = sum(lease.reserve for lease in open_ if lease and self._holds(lease))
        return Spending(self.budget, self.committed, in_flight, False, self.paid)

    @property
    def count(self) -> CallCount:
        return CallCount(sum(self.calls.values()), sum(calls > 0 for calls in self.calls.values()))

    @property
    def owners(self) -> set[str]:
        """Who has a lease whose time is not over."""
        held = [self._open(run_id) for run_id in self.holding]
        return {lease.owner for lease in held if lease and self.now <= lease.until}

    def _open(self, run_id: str) -> Granted | None:
        return self.granted.get(self.holding[run_id]) if run_id in self.holding else None

    def _holds(self, lease: Granted) -> bool:
        is_alive = self.now - self.seen.get(lease.owner, self.now) <= DEAD_AFTER_SECONDS
        return is_alive and self.now <= lease.until

    def take(self, claim: Lease, owner: str) -> LeaseAnswer:
        key, run_id = claim.key, claim.key.run_id
        held = self._open(run_id)
        if held and (held.key, held.owner) == (key, owner):
            return LeaseAnswer.GRANTED
        if run_id in self.answered:
            return LeaseAnswer.ANSWERED
        if held and held.owner != owner and self._holds(held):
            return LeaseAnswer.HELD
        is_capped = claim.reserve and self.budget is not None
        if is_capped and self.committed + claim.reserve > (self.budget or 0):
            return LeaseAnswer.OVER_BUDGET
        self.granted[key] = Granted(key, owner, self.now + claim.seconds, claim.reserve)
        self.holding[run_id] = key
        self.calls[run_id] = self.calls.get(run_id, 0) + 1
        return LeaseAnswer.GRANTED

    def record(self, run_id: str, key: LeaseKey | None, cost: int | None) -> None:
        lease = self.granted.pop(key, None) if key else None
        if lease:
            self.kept += lease.reserve if cost is None else cost
        elif run_id not in self.answered:
            self.kept += cost or 0
        if lease or run_id not in self.answered:
            self.paid += cost or 0
        self.answered.add(run_id)

    def end(self, key: LeaseKey, *, billed: bool) -> None:
        if lease := self.granted.pop(key, None):
            self.kept += lease.reserve if billed else 0

    def give_back(self, key: LeaseKey) -> None:
        if self.granted.pop(key, None):
            self.calls[key.run_id] -= 1


class Play:
    """Steps done both by the books and by stores that take turns."""

    def __init__(
        self, stores: tuple[Store, Store], clock: StoppedClock, occasion: str, budget: int | None
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._occasion = occasion
        self._books = Books(budget)
        self._runs: list[Run] = []
        self._claimed: list[LeaseKey] = []

    async def play(self, steps: Iterable[tuple[Step, int]]) -> None:
        experiment = an_experiment(occasion=self._occasion, budget=self._books.budget)
        await self._stores[0].register(experiment)
        self._runs = list(experiment.runs())
        for number, (step, times) in enumerate(steps):
            before = self._books.committed
            await self._do(step, [self._stores[(number + time) % 2] for time in range(times)])
            spending = await self._stores[0].spending(experiment.experiment_id)
            assert spending == self._books.spending, step
            assert await self._stores[1].calls(experiment.experiment_id) == self._books.count, step
            if isinstance(step, Take) and spending.budget is not None:
                assert spending.committed <= max(spending.budget, before)

    async def _do(self, step: Step, stores: list[Store]) -> None:
        match step:
            case Take(owner, wanted):
                await self._take(owner, wanted, stores)
            case Reply(lease, cost):
                for key in self._keys([lease]):
                    await self._record(key.run_id, key, cost, stores)
            case Unleased(turn, cost):
                await self._record(self._runs[turn].run_id, None, cost, stores)
            case End() | GiveBack():
                await self._end(step, stores)
            case Beat() | Leave() | LeaveOthers():
                await self._say(step, stores)
            case Budget(amount):
                self._books.budget = amount
                await stores[0].register(an_experiment(occasion=self._occasion, budget=amount))
            case Wait(seconds):
                self._books.now += seconds
                self._clock.pass_by(seconds)

    async def _end(self, step: End | GiveBack, stores: list[Store]) -> None:
        keys = self._keys(step.leases)
        for store in stores:
            match step:
                case End(_, billed):
                    await store.end_calls([CallEnd(key, billed) for key in keys])
                    for key in keys:
                        self._books.end(key, billed=billed)
                case GiveBack():
                    await store.give_back_leases(keys)
                    for key in keys:
                        self._books.give_back(key)

    async def _say(self, step: Beat | Leave | LeaveOthers, stores: list[Store]) -> None:
        """Owners are those of this play alone: the clock and the owners are everybody's."""
        seen, name = self._books.seen, self._owner(step.owner)
        for store in stores:
            match step:
                case Beat():
                    seen[name] = self._books.now
                    await store.heartbeat(name, [])
                case Leave():
                    seen[name] = float("-inf")
                    await store.leave(name)
                case LeaveOthers():
                    others = self._books.owners | seen.keys()
                    seen.update(dict.fromkeys(others - {name}, float("-inf")))
                    await store.leave_others(name)

    async def _take(
        self, owner: str, wanted: Iterable[tuple[int, int, int]], stores: list[Store]
    ) -> None:
        first = len(self._claimed)
        claims = [
            claim_of(self._runs[turn], f"{number}", reserve, seconds=seconds)
            for number, (turn, reserve, seconds) in enumerate(wanted, first)
        ]
        self._claimed += [claim.key for claim in claims]
        for store in stores:
            answers = await store.take_leases(claims, self._owner(owner))
            expected = [self._books.take(claim, self._owner(owner)) for claim in claims]
            assert list(answers) == expected

    async def _record(
        self, run_id: str, key: LeaseKey | None, cost: int | None, stores: list[Store]
    ) -> None:
        [run] = [run for run in self._runs if run.run_id == run_id]
        for store in stores:
            await store.record([a_response(run, cost=cost)], [key.lease_id if key else NO_LEASE])
            self._books.record(run_id, key, cost)

    def _keys(self, leases: Iterable[int]) -> set[LeaseKey]:
        return {self._claimed[lease % len(self._claimed)] for lease in leases if self._claimed}

    def _owner(self, name: str) -> str:
        return f"{self._occasion} {name}"


@pytest.mark.two_lengths
def test_after_every_step_the_spending_is_what_the_calls_add_up_to(
    adapter: StoreAdapter, database: Database, clock: StoppedClock
) -> None:
    numbers = count()
    with asyncio.Runner() as loop:
        stores = database(clock), database(clock)
        loop.run(stores[0].prepare())

        @settings(max_examples=adapter.examples)
        @given(budget=st.none() | st.integers(0, 20), steps=STEPS)
        @example(
            budget=9,
            steps=[
                (Take("a", ((0, 4, 60), (1, 4, 60))), 2),
                (Wait(61), 1),
                (Take("b", ((0, 4, 60), (1, 1, 60))), 1),
                (Reply(3, 1), 2),
                (End(frozenset({0, 1}), billed=False), 2),
                (Take("b", ((0, 4, 60),)), 2),
                (Reply(4, None), 2),
                (GiveBack(frozenset({2, 4})), 2),
            ],
        )
        @example(
            budget=None,
            steps=[
                (Take("a", ((0, 4, 60), (1, 3, 60))), 1),
                (Take("a", ((0, 2, 60),)), 1),
                (Leave("a"), 1),
                (Take("b", ((1, 1, 60),)), 1),
                (GiveBack(frozenset({0, 1, 2, 3})), 2),
            ],
        )
        def hold(budget: int | None, steps: list[tuple[Step, int]]) -> None:
            loop.run(Play(stores, clock, f"example {next(numbers)}", budget).play(steps))

        try:
            hold()
        finally:
            for store in stores:
                loop.run(store.close())
