"""A budget holds with several concurrent runners, and no two of them deadlock."""

from __future__ import annotations

import asyncio
import random

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.ports.stores.leases import CallEnd, Lease, Spending
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import a_response, an_experiment, claim_of, record_unleased
from tests.waiting import waiting_for


class Runner:
    """Leases turns at random and ends each call in one way or another; keeps its own books."""

    def __init__(self, store: Store, experiment: Experiment, name: str) -> None:
        self._store = store
        self._runs = {run.run_id: run for run in experiment.runs()}
        self._name = name
        self._chance = random.Random(name)
        self.spent = 0
        self.left_open = 0
        self.refused = 0

    async def work(self, rounds: int) -> None:
        for number in range(rounds):
            claims = [
                claim_of(run, f"{self._name} {number}", self._chance.randint(0, 9))
                for run in self._chance.sample(list(self._runs.values()), 20)
            ]
            answers = await self._store.take_leases(claims, self._name)
            self.refused += answers.count(LeaseAnswer.OVER_BUDGET)
            granted = [
                claim
                for claim, answer in zip(claims, answers, strict=True)
                if answer is LeaseAnswer.GRANTED
            ]
            await self._end(granted)

    async def _end(self, granted: list[Lease]) -> None:
        """End calls in one way or another, each as if its first answer had been lost."""
        answered, failed, lost = granted[::3], granted[1::3], granted[2::3]
        responses = []
        for claim in answered:
            cost = self._chance.randint(0, claim.reserve)
            responses.append(a_response(self._runs[claim.key.run_id], cost=cost))
            self.spent += cost
        billed = self._chance.random() < 0.5
        ends = [CallEnd(claim.key, billed) for claim in failed]
        lease_ids = [claim.key.lease_id for claim in answered]
        for _ in range(2):
            await asyncio.gather(
                self._store.record(responses, lease_ids), self._store.end_calls(ends)
            )
        kept = [*lost, *failed] if billed else lost
        self.left_open += sum(claim.reserve for claim in kept)


async def test_no_more_is_ever_committed_than_the_budget_and_nothing_gets_lost(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=4, scenarios=5, repeats=10, budget=500))
    stores = store, other_store
    runners = [Runner(stores[number % 2], experiment, f"runner-{number}") for number in range(10)]
    seen: list[Spending] = []

    async def watch() -> None:
        while True:
            seen.append(await other_store.spending(experiment.experiment_id))

    watching = asyncio.create_task(watch())
    async with waiting_for("ten runners"):
        await asyncio.gather(*(runner.work(rounds=12) for runner in runners))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert max(spending.committed for spending in seen) <= 500
    assert all(0 <= spending.in_flight <= spending.committed for spending in seen)
    assert sum(runner.refused for runner in runners)
    committed = (await store.spending(experiment.experiment_id)).committed
    assert committed == sum(runner.spent + runner.left_open for runner in runners)


async def test_claims_at_the_same_moment_share_one_budget(store: Store, other_store: Store) -> None:
    experiment = await store.register(an_experiment(models=4, scenarios=5, repeats=2, budget=10))
    answers = await asyncio.gather(
        *(
            (store, other_store)[number % 2].take_leases(
                [claim_of(run, "lease", 1)], f"runner-{number}"
            )
            for number, run in enumerate(experiment.runs())
        )
    )
    assert answers.count([LeaseAnswer.GRANTED]) == 10
    assert answers.count([LeaseAnswer.OVER_BUDGET]) == 30
    spending = await store.spending(experiment.experiment_id)
    assert spending == Spending(10, 10, 10, exhausted=False)


async def test_of_many_writers_of_a_response_one_settles_it(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(budget=1_000))
    runs = list(experiment.runs())
    await store.take_leases([claim_of(run, "lease", 50) for run in runs], "runner")
    stored = await asyncio.gather(
        *(
            (store, other_store)[cost % 2].record(
                [a_response(run, cost=cost) for run in runs], ["lease"] * len(runs)
            )
            for cost in range(20)
        )
    )
    spent = sum(response.cost_nanodollars or 0 for response in stored[0])
    assert all(responses == stored[0] for responses in stored)
    spending = await store.spending(experiment.experiment_id)
    assert spending == Spending(1_000, spent, 0, exhausted=False, paid=spent)


async def test_every_reply_for_a_turn_is_paid_for_once_whichever_is_stored(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=1, scenarios=1, repeats=4))
    runs = list(experiment.runs())
    for number in range(20):
        await store.take_leases([claim_of(run, f"{number}", 50) for run in runs], "runner")
    stored = await asyncio.gather(
        *(
            (store, other_store)[repetition].record(
                [a_response(run, cost=number) for run in runs], [f"{number}"] * len(runs)
            )
            for number in range(20)
            for repetition in range(2)
        )
    )
    assert all(responses == stored[0] for responses in stored)
    spending = await store.spending(experiment.experiment_id)
    assert spending == Spending(None, 760, 0, exhausted=False, paid=760)


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
            await record_unleased(
                writer, [a_response(run, cost=3) for run in batch[start : start + 12]]
            )

    async with waiting_for("twelve writers"):
        await asyncio.gather(*(write(number) for number in range(12)))
    for experiment in experiments:
        spending = await store.spending(experiment.experiment_id)
        assert spending == Spending(10_000, 36, 0, exhausted=False, paid=36)
