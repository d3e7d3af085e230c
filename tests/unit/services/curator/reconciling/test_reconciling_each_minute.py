"""The scheduled reconciler restores lost work within three minutes, whenever its passes are."""

import itertools

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import (
    BROADCASTS,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.events.codec import decode
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_curator.reconciling.reconciler import Reconciler
from socratic_curator.settings import SchedulerSettings
from tests.contract.store.facts import (
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)

PASS_SECONDS = 60.0
"""Between two passes; the test of the templates holds the schedule to it."""

PROMISED_SECONDS = 180.0

LATE = (0.0, 5.0, 14.0)
"""Seconds by which the schedule and a start of the function may delay a pass."""

EXPERIMENT = an_experiment()
RUNS = list(EXPERIMENT.runs())
DELAYS_OF_FOUR_PASSES = list(itertools.product(LATE, repeat=4))


class GroupBlindBroker(MemoryBroker):
    """A broker that counts the messages of a queue and not those of a group, as SQS."""

    async def depth(self, queue, group=None, *, groups=()):
        return None if group is not None else await super().depth(queue)


@pytest.fixture
async def broker():
    broker = GroupBlindBroker()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


@pytest.fixture
async def store():
    store = MemoryStore()
    await store.prepare()
    await store.register(EXPERIMENT)
    await store.mark_planned(EXPERIMENT.experiment_id, MONDAY)
    return store


@pytest.fixture
def healer(store, broker, clock):
    quiet = SchedulerSettings.model_fields["curator_quiet"].default
    return Reconciler(store, broker, clock, "scheduler-1", quiet=quiet, monotonic=clock)


async def reconcile_in_time(healer, store, clock, delays):
    """Lose all work right after a pass and some progress; do the passes of the promised time."""
    *_, last = RUNS
    lost_at = clock.seconds = 1_000.0 + delays[0]
    await healer.reconcile()
    await record_unleased(store, [a_response(last)])
    await store.fold([a_score(last)], [])
    for number, delay in enumerate(delays[1:], start=1):
        clock.seconds = 1_000.0 + number * PASS_SECONDS + delay
        if clock.seconds <= lost_at + PROMISED_SECONDS:
            await healer.reconcile()


async def published(broker, queue):
    """The ids of the runs whose events wait in a queue."""
    depth = await broker.depth(queue.name)
    async with broker.consume(queue.name, prefetch=10_000) as consumer:
        waiting = [await consumer.receive(1) for _ in range(depth)]
    return {decode(delivery.message.body).subject for [delivery] in waiting}


@pytest.mark.parametrize("delays", DELAYS_OF_FOUR_PASSES)
async def test_lost_requests_are_restored_in_time(healer, store, broker, clock, delays):
    await reconcile_in_time(healer, store, clock, delays)
    assert await published(broker, RUNNER_RUN_REQUESTED) == {run.run_id for run in RUNS[:-1]}


@pytest.mark.parametrize("delays", DELAYS_OF_FOUR_PASSES)
async def test_lost_responses_and_failures_are_restored_in_time(
    healer, store, broker, clock, delays
):
    answered, failed, *others, _ = RUNS
    await record_unleased(store, [a_response(run) for run in (answered, *others)])
    await store.fold([a_score(run) for run in others], [])
    await store.record_failures([RecordedFailure(a_failure(failed), 0)])
    await reconcile_in_time(healer, store, clock, delays)
    assert await published(broker, JUDGE_RESPONSE_RECORDED) == {answered.run_id}
    assert await published(broker, CURATOR_RUN_FAILED) == {failed.run_id}


async def test_a_pass_with_nothing_to_do_writes_nothing(broker, clock, monkeypatch):
    store, claims = MemoryStore(), []
    await store.prepare()
    take_leases = store.take_leases

    async def claimed(leases, owner, **judging):
        claims.append(clock.seconds)
        return await take_leases(leases, owner, **judging)

    monkeypatch.setattr(store, "take_leases", claimed)
    healer = Reconciler(store, broker, clock, "scheduler-1", monotonic=clock)
    for minute in range(10):
        clock.seconds = minute * PASS_SECONDS
        assert not await healer.reconcile()
    # The look for experiments to delete, once in ten minutes, needs the turn.
    assert claims == [0.0]
    await store.register(EXPERIMENT)
    clock.seconds += PASS_SECONDS / 2
    await healer.reconcile()
    assert claims == [0.0, clock.seconds]
