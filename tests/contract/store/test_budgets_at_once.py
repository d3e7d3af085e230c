"""A budget holds with several runners at work at once, none of which waits for another for ever."""

from __future__ import annotations

import asyncio
import random

from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.ports.store import Claim, Spending, Store, TurnKey
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment
from tests.waiting import waiting_for


def _turn(run: Run) -> TurnKey:
    return TurnKey(run.run_id, 1)


class Runner:
    """Leases turns at random and ends each call in one way or another; keeps its own books."""

    def __init__(self, store: Store, experiment: Experiment, name: str) -> None:
        self._store = store
        self._runs = {_turn(run): run for run in experiment.runs()}
        self._id = experiment.experiment_id
        self._name = name
        self._chance = random.Random(name)
        self.spent = 0
        self.left_open = 0
        self.refused = 0

    async def work(self, rounds: int) -> None:
        for _ in range(rounds):
            turns = self._chance.sample(sorted(self._runs), 20)
            reserves = {turn: self._chance.randint(0, 9) for turn in turns}
            claims = [Claim(turn, reserve) for turn, reserve in reserves.items()]
            leases = await self._store.lease(self._id, claims, self._name, MONDAY, MONDAY + MINUTE)
            self.refused += len(leases.over_budget)
            granted = sorted(leases.granted)
            self._chance.shuffle(granted)
            await self._end(granted, reserves)

    async def _end(self, granted: list[TurnKey], reserves: dict[TurnKey, int]) -> None:
        answered, failed, lost = granted[::3], granted[1::3], granted[2::3]
        responses = []
        for turn in answered:
            cost = self._chance.randint(0, reserves[turn])
            responses.append(a_response(self._runs[turn], cost=cost))
            self.spent += cost
        paid = self._chance.random() < 0.5
        await asyncio.gather(
            self._store.record(responses),
            self._store.release(self._id, failed, self._name, paid=paid),
        )
        kept = [*lost, *failed] if paid else lost
        self.left_open += sum(reserves[turn] for turn in kept)


async def test_no_more_is_ever_committed_than_the_budget_and_nothing_gets_lost(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=4, scenarios=5, repeats=10, budget=500))
    stores = store, other_store
    runners = [Runner(stores[number % 2], experiment, f"runner-{number}") for number in range(10)]
    seen: list[Spending] = []

    async def watch() -> None:
        while True:
            seen.append(await other_store.spending(experiment.experiment_id, MONDAY))

    watching = asyncio.create_task(watch())
    async with waiting_for("ten runners"):
        await asyncio.gather(*(runner.work(rounds=12) for runner in runners))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert max(spending.committed for spending in seen) <= 500
    assert all(0 <= spending.in_flight <= spending.committed for spending in seen)
    assert sum(runner.refused for runner in runners)
    committed = (await store.spending(experiment.experiment_id, MONDAY)).committed
    assert committed == sum(runner.spent + runner.left_open for runner in runners)


async def test_claims_at_the_same_moment_share_one_budget(store: Store, other_store: Store) -> None:
    experiment = await store.register(an_experiment(models=4, scenarios=5, repeats=2, budget=10))
    leases = await asyncio.gather(
        *(
            (store, other_store)[number % 2].lease(
                experiment.experiment_id,
                [Claim(_turn(run), 1)],
                f"runner-{number}",
                MONDAY,
                MONDAY + MINUTE,
            )
            for number, run in enumerate(experiment.runs())
        )
    )
    assert sum(len(each.granted) for each in leases) == 10
    assert sum(len(each.over_budget) for each in leases) == 30
    spending = await store.spending(experiment.experiment_id, MONDAY)
    assert spending == Spending(10, 10, 10, exhausted=False)


async def test_of_many_writers_of_a_response_one_settles_it(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(budget=1_000))
    runs = list(experiment.runs())
    claims = [Claim(_turn(run), 50) for run in runs]
    await store.lease(experiment.experiment_id, claims, "runner", MONDAY, MONDAY + MINUTE)
    stored = await asyncio.gather(
        *(
            (store, other_store)[cost % 2].record([a_response(run, cost=cost) for run in runs])
            for cost in range(20)
        )
    )
    spent = sum(response.cost_nanodollars or 0 for response in stored[0])
    assert all(responses == stored[0] for responses in stored)
    spending = await store.spending(experiment.experiment_id, MONDAY)
    assert spending == Spending(1_000, spent, 0, exhausted=False)


async def test_batches_across_experiments_settle_without_waiting_crosswise(
    store: Store, other_store: Store
) -> None:
    experiments = [
        await store.register(an_experiment(occasion=f"week {week}", budget=10_000))
        for week in range(4)
    ]
    runs = [run for experiment in experiments for run in experiment.runs()]

    async def write(number: int) -> None:
        writer = (store, other_store)[number % 2]
        batch = random.Random(number).sample(runs, len(runs))
        for start in range(0, len(batch), 12):
            await writer.record([a_response(run, cost=3) for run in batch[start : start + 12]])

    async with waiting_for("twelve writers"):
        await asyncio.gather(*(write(number) for number in range(12)))
    for experiment in experiments:
        spending = await store.spending(experiment.experiment_id, MONDAY)
        assert spending == Spending(10_000, 36, 0, exhausted=False)
