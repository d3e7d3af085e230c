"""Of an experiment with a grader, answers go to the runner and not to the judge."""

from decimal import Decimal

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import JUDGE_RESPONSE_RECORDED, RUNNER_RUN_REQUESTED
from socratic_bench.events.codec import decode
from socratic_bench.planning.plan import PlanCounts, resume
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_curator.reconciling.watched import QUIET_SECONDS
from tests.contract.store.facts import (
    GRADED,
    MONDAY,
    a_grading,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
    with_grader,
)

EXPERIMENT = with_grader(an_experiment(models=1, scenarios=1, repeats=2))
FIRST, SECOND = EXPERIMENT.runs()
TEXT = "Why?"


@pytest.fixture
async def store():
    store = MemoryStore()
    await store.register(EXPERIMENT)
    await store.mark_planned(EXPERIMENT.experiment_id, MONDAY)
    answers = [
        a_response(run, TEXT).model_copy(update={"profile": GRADED}) for run in (FIRST, SECOND)
    ]
    await record_unleased(store, [*answers, a_grading(EXPERIMENT, TEXT)])
    return store


async def depths(broker) -> tuple[int, int]:
    queues = RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED
    runner, judge = [await broker.depth(queue.name) for queue in queues]
    return runner, judge


async def test_planning_requests_answered_runs(store, clock):
    published = []

    async def publish(events):
        published.extend(events)

    runs = EXPERIMENT.runs()
    counts = await resume(EXPERIMENT, runs, store, publish, clock=clock)
    assert counts == PlanCounts(planned=2, already_done=0, answered=0, requested=2)
    assert [event.data.run for event in published] == [FIRST, SECOND]


async def test_the_reconciler_requests_the_runs_of_responses_without_a_score(
    store, healer, broker, clock
):
    await store.fold([a_score(FIRST, profile=GRADED)], [])
    await healer.reconcile()
    clock.seconds += QUIET_SECONDS
    await healer.reconcile()
    runner, judge = await depths(broker)
    assert (runner > 0, judge) == (True, 0)
    async with broker.consume(RUNNER_RUN_REQUESTED.name, prefetch=9) as consumer:
        found = {decode(each.message.body).subject for each in await consumer.receive(9)}
    assert found == {SECOND.run_id}


async def test_a_slow_grader_is_no_gap(store, healer, broker, clock):
    await store.heartbeat("runner-1", [ModelInHand(EXPERIMENT.experiment_id, FIRST.model_id)])
    for _ in range(4):
        await healer.reconcile()
        clock.seconds += QUIET_SECONDS
    assert await depths(broker) == (0, 0)


async def test_an_exhausted_budget_is_no_gap(store, healer, broker, clock):
    budget = EXPERIMENT.manifest.model_copy(update={"budget": Decimal(0)})
    await store.register(EXPERIMENT.model_copy(update={"manifest": budget}))
    await store.exhaust(EXPERIMENT.experiment_id, 1)
    for _ in range(4):
        await healer.reconcile()
        clock.seconds += QUIET_SECONDS
    assert await depths(broker) == (0, 0)
