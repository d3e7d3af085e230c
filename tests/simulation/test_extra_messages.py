"""Messages beyond the necessary ones, and turns, in an hour of an undisturbed benchmark."""

import asyncio
from decimal import Decimal

import pytest

from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_runner.models.registry import open_client
from tests.simulation.hour import HOUR, START, simulation, waiting
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now

SLOW = TutorModel(
    id="reference/socratic",
    options={"latency_ms": 4_000},
    limits=Limits(requests_per_minute=60),
    price=Price(input_per_million=Decimal(1), output_per_million=Decimal(1)),
)
"""A model at one call a second."""

SCENARIO = Scenario(id="growth", dimension="ambiguous", prompt="My startup isn't growing. Why?")
MOST_EXTRA = 0.01
RETRY_AFTER = 1_200.0


def an_experiment(runs, **plan):
    manifest = Manifest(models=(SLOW,), scenarios=(SCENARIO,), repeats=runs, **plan)
    return Experiment(manifest=manifest, created_at=START)


def test_runs_that_wait_behind_a_slow_model_are_sent_once():
    runs = 1_000

    async def hour():
        async with simulation(runners=2) as simulated:
            id_ = await simulated.plan(an_experiment(runs))
            await asyncio.sleep(HOUR)
            done = (await simulated.store.progress(id_)).done
            return done, simulated.extra, await simulated.dead()

    done, extra, dead = in_virtual_time(hour())
    print(f"{done} runs of {runs} done in an hour, {extra} extra messages, {dead} dead letters")
    assert done >= min(runs, 0.98 * HOUR)
    assert extra < MOST_EXTRA * done
    assert dead == 0


def test_a_few_runs_of_high_priority_pass_thousands_that_wait():
    async def hour():
        async with simulation(runners=2) as simulated:
            study = await simulated.plan(an_experiment(5_000))
            await asyncio.sleep(HOUR / 6)
            begun = (await simulated.store.progress(study)).done
            few = await simulated.plan(an_experiment(60, priority="high"))
            await asyncio.sleep(HOUR / 12)
            done = (await simulated.store.progress(few)).done
            beside = (await simulated.store.progress(study)).done - begun
            return done, beside, simulated.extra, await simulated.dead()

    done, beside, extra, dead = in_virtual_time(hour())
    print(f"{done} runs of high priority done, {beside} others meanwhile")
    assert done == 60
    assert beside > 60
    assert (extra, dead) == (0, 0)


def test_an_experiment_whose_budget_is_exhausted_is_left_alone():
    async def hour():
        async with simulation(runners=1) as simulated:
            id_ = await simulated.plan(an_experiment(300, budget=Decimal("0.01")))
            await asyncio.sleep(HOUR / 6)
            sent = simulated.broker.published.total()
            await asyncio.sleep(HOUR)
            assert (await simulated.store.spending(id_)).exhausted
            assert (await simulated.store.experiment(id_)).completed_at is None
            return sent, simulated.broker.published.total(), simulated.extra

    before, after, extra = in_virtual_time(hour())
    assert before == after
    assert extra == 0


class BusyAtFirst:
    """A model whose provider wants to be left alone for a long time, and answers then."""

    concurrency = None
    answers_at_once = False

    def __init__(self, model):
        self.client = open_client(model)

    async def ask(self, question):
        reply = await self.client.ask(question)
        if now() < RETRY_AFTER:
            raise ModelCallFailed(
                FailureKind.RATE_LIMITED, "busy", retryable=True, retry_after=RETRY_AFTER
            )
        return reply

    async def close(self):
        await self.client.close()


@pytest.mark.parametrize("runs", [100, pytest.param(400, marks=pytest.mark.long)])
def test_runs_that_wait_for_a_busy_provider_are_not_requested_again(runs):
    async def hour():
        async with simulation(runners=1, open_client=BusyAtFirst) as simulated:
            id_ = await simulated.plan(an_experiment(runs))
            await asyncio.sleep(RETRY_AFTER)
            before = (await simulated.store.progress(id_)).done
            await asyncio.sleep(HOUR - RETRY_AFTER)
            return before, await simulated.store.progress(id_), simulated.extra

    before, progress, extra = in_virtual_time(hour())
    assert before == 0
    assert (progress.done, progress.failed) == (runs, 0)
    assert extra == 0


def test_an_experiment_that_is_complete_is_left_alone():
    async def hour():
        async with simulation(runners=1) as simulated:
            id_ = await simulated.plan(an_experiment(30))
            await asyncio.sleep(HOUR)
            assert (await simulated.store.experiment(id_)).completed_at is not None
            return simulated.extra

    assert in_virtual_time(hour()) == 0


def test_runs_that_wait_for_a_runner_are_not_requested_again():
    async def hour():
        async with simulation(runners=0) as simulated:
            await simulated.plan(an_experiment(1_000))
            await asyncio.sleep(HOUR)
            return await waiting(simulated), simulated.extra

    assert in_virtual_time(hour()) == (1_000, 0)
