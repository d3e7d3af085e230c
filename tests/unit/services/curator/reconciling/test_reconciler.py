"""The reconciler sends lost messages again, and no others."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.provider_batch import ProviderBatch
from socratic_bench.events.codec import decode, to_message
from socratic_bench.events.event_types import EXPERIMENT_COMPLETED as COMPLETED
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_curator.reconciling import reconciler as reconciling
from socratic_curator.reconciling.reconciler import Reconciler
from socratic_curator.reconciling.watched import (
    LONGEST_LOOK_SECONDS,
    QUIET_SECONDS,
    WatchedModel,
)
from tests.contract.store.facts import (
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    record_unleased,
    that_wavers,
    wavering,
)
from tests.servers.sqlite import prepared_file
from tests.waiting import waiting_for

EXPERIMENT = an_experiment()
RUNS = list(EXPERIMENT.runs())
MODELS = [model.id for model in EXPERIMENT.manifest.models]


@pytest.fixture
async def store():
    store = MemoryStore()
    await store.register(EXPERIMENT)
    await store.mark_planned(EXPERIMENT.experiment_id, MONDAY)
    yield store
    await store.close()


async def taken(broker, queue):
    """The events that wait in a queue, settled."""
    depth = await broker.depth(queue.name)
    events = []
    async with broker.consume(queue.name, prefetch=10_000) as consumer:
        while len(events) < depth:
            deliveries = await consumer.receive(10_000)
            events += [decode(delivery.message.body) for delivery in deliveries]
            await consumer.ack(deliveries)
    return events


async def after(healer, clock, seconds):
    """Two looks, so many seconds apart."""
    await healer.reconcile()
    clock.seconds += seconds
    await healer.reconcile()


async def test_runs_that_nobody_has_are_requested_after_the_quiet_time(healer, broker, clock):
    await after(healer, clock, QUIET_SECONDS - 1)
    assert await taken(broker, RUNNER_RUN_REQUESTED) == []
    clock.seconds += 1
    await healer.reconcile()
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert sorted(each.subject for each in requested) == sorted(run.run_id for run in RUNS)
    assert {each.data.retry for each in requested} == {None}
    assert healer.sent_again == {"runs": len(RUNS)}


async def test_a_lost_repeat_is_requested_once_it_is_due_and_the_end_is_noticed(
    healer, store, broker, clock
):
    await store.fold([a_score(run) for run in RUNS], [])
    experiment = await store.register(that_wavers())
    await store.mark_planned(experiment.experiment_id, MONDAY)
    await store.fold([wavering(run) for run in experiment.up_to(2).runs()], [])
    await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    third = list(experiment.up_to(3).runs(3))
    assert {each.subject for each in requested} == {run.run_id for run in third}
    await store.fold([wavering(run) for run in third], [])
    await after(healer, clock, QUIET_SECONDS)
    stored = await store.experiment(experiment.experiment_id)
    assert (stored.manifest.stopped_after, stored.completed_at) == (3, MONDAY)
    assert await taken(broker, RUNNER_RUN_REQUESTED) == []


async def test_what_is_lost_again_is_requested_half_as_often_each_time(
    healer, broker, clock, monkeypatch
):
    async def depth(queue, group=None, *, ask=broker.depth):
        return 0 if group else await ask(queue)  # a runner takes each at once

    monkeypatch.setattr(broker, "depth", depth)
    sent_at = []
    for second in range(0, 4_400, 10):
        clock.seconds = 1_000.0 + second
        await healer.reconcile()
        if await taken(broker, RUNNER_RUN_REQUESTED):
            sent_at.append(second)
    # The longer nothing has changed, the less often an experiment is looked at.
    assert len(sent_at) == 6
    for second, ideal in zip(sent_at, [45, 135, 315, 675, 1395, 2835], strict=True):
        assert ideal <= second <= ideal * 9 / 8 + 10


async def test_requests_that_the_broker_loses_before_anybody_takes_them_are_sent_again_as_soon(
    healer, broker, clock
):
    sent_at = []
    for second in range(0, 300, 10):
        clock.seconds = 1_000.0 + second
        await healer.reconcile()
        if await taken(broker, RUNNER_RUN_REQUESTED):
            sent_at.append(second)
    assert sent_at[0] == 50
    assert all(later - earlier < 90 for earlier, later in pairwise(sent_at))


async def test_experiments_that_nobody_goes_on_with_cost_ever_less(healer, store, clock):
    looks = Counter()

    async def ended_runs(experiment_id, ask=store.ended_runs):
        looks[clock.seconds // 3_600] += 1
        return await ask(experiment_id)

    store.ended_runs = ended_runs
    clock.seconds = 0.0
    for _ in range(6 * 3 * 60):
        await healer.reconcile()
        clock.seconds += 10
    assert looks[1] == looks[2] == 3_600 / LONGEST_LOOK_SECONDS < looks[0] < 90


async def test_an_idle_experiment_is_looked_at_again_once_it_changes(store, broker, clock):
    poor = await store.register(an_experiment(occasion="poor", budget=0))
    await store.mark_planned(poor.experiment_id, MONDAY)
    await store.exhaust(poor.experiment_id, 1)
    await store.fold([a_score(run) for run in RUNS], [])
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    for _ in range(360):
        await healer.reconcile()
        clock.seconds += 10
    assert await taken(broker, RUNNER_RUN_REQUESTED) == []
    await store.register(poor.model_copy(update={"manifest": EXPERIMENT.manifest}))
    await after(healer, clock, QUIET_SECONDS)
    assert len(await taken(broker, RUNNER_RUN_REQUESTED)) == len(RUNS)


async def test_one_experiment_that_cannot_be_healed_keeps_no_other_from_it(
    healer, store, broker, clock
):
    odd = await store.register(
        an_experiment(occasion="odd", created_at=MONDAY + timedelta(minutes=1))
    )

    async def ended_runs(experiment_id, ask=store.ended_runs):
        if experiment_id == odd.experiment_id:
            raise ArithmeticError("a fault of this version")
        return await ask(experiment_id)

    store.ended_runs = ended_runs
    with capture_logs() as logs:
        await after(healer, clock, QUIET_SECONDS)
    assert len(await taken(broker, RUNNER_RUN_REQUESTED)) == len(RUNS)
    assert {each["correlation_id"] for each in logs if each["log_level"] == "error"} == {
        odd.experiment_id
    }


async def test_a_fault_ends_no_reconciler(healer, store, monkeypatch):
    asked = asyncio.Event()

    async def running():
        if store.faults:
            raise store.faults.pop()
        asked.set()
        return []

    store.faults = [ArithmeticError("a fault of this version")]
    store.running = running
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 0.0)
    async with reconciling.reconciling(healer):
        await asyncio.wait_for(asked.wait(), 10)


async def test_only_runs_that_are_not_done_are_requested(healer, store, broker, clock):
    done, *others = RUNS
    await record_unleased(store, [a_response(done)])
    await store.fold([a_score(done)], [])
    await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert sorted(each.subject for each in requested) == sorted(run.run_id for run in others)


async def test_a_search_for_the_last_lost_runs_asks_once_for_many_runs(healer, store, monkeypatch):
    """The first run is lost, all others are done: a search for one more looks them up together."""
    model = MODELS[0]
    _, *done = [run for run in RUNS if run.model_id == model]
    await record_unleased(store, [a_response(run) for run in done])
    await store.fold([a_score(run) for run in done], [])
    asked = []
    read = store.done_runs

    async def done_runs(experiment_id, run_ids):
        asked.append(len(run_ids))
        return await read(experiment_id, run_ids)

    monkeypatch.setattr(store, "done_runs", done_runs)
    assert await healer._healer._request_lost(EXPERIMENT, model, WatchedModel(1), 2) == 1
    assert len(asked) <= 2


async def test_a_backlog_is_no_gap(healer, broker, clock):
    await healer._healer._request_lost(EXPERIMENT, MODELS[0], WatchedModel(1), 1)
    before = await broker.depth(RUNNER_RUN_REQUESTED.name)
    for _ in range(100):
        clock.seconds += 60
        await healer.reconcile()
    of_others = [
        each for each in await taken(broker, RUNNER_RUN_REQUESTED) if each.partitionkey == MODELS[0]
    ]
    assert len(of_others) == before


async def test_what_a_living_runner_has_in_hand_is_no_gap(healer, store, broker, clock):
    in_hand = [ModelInHand(EXPERIMENT.experiment_id, model) for model in MODELS]
    for _ in range(100):
        await store.heartbeat("runner-1", in_hand)
        clock.seconds += 60
        await healer.reconcile()
    assert await taken(broker, RUNNER_RUN_REQUESTED) == []


@pytest.mark.parametrize(("hours", "is_lost"), [(25, False), (27, True)])
async def test_turns_in_a_batch_are_no_gap_for_a_day(store, broker, clock, hours, is_lost):
    manifest = EXPERIMENT.manifest
    models = tuple(each.model_copy(update={"options": {"batch": True}}) for each in manifest.models)
    batched = Experiment(manifest=manifest.model_copy(update={"models": models}), created_at=MONDAY)
    await store.register(batched)
    await store.mark_planned(batched.experiment_id, MONDAY)
    await store.complete(EXPERIMENT.experiment_id, MONDAY)
    for run in batched.runs():
        batch = ProviderBatch.new(run.model_id, MONDAY - timedelta(hours=hours))
        await store.take_leases([claim_of(run, batch.entry(0), seconds=10**6)], batch.owner)
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    await after(healer, clock, 10 * QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert (batched.experiment_id in {each.correlationid for each in requested}) is is_lost


async def test_an_exhausted_budget_is_no_gap(store, broker, clock):
    poor = an_experiment(occasion="poor", budget=10_000_000)
    await store.register(poor)
    await store.mark_planned(poor.experiment_id, MONDAY)
    await store.exhaust(poor.experiment_id, 10**18)
    await store.complete(EXPERIMENT.experiment_id, MONDAY)
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    await after(healer, clock, 10 * QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert poor.experiment_id not in {each.correlationid for each in requested}


async def test_lost_runs_of_a_raised_experiment_are_requested_with_its_priority(
    healer, store, broker, clock
):
    await healer.reconcile()
    await store.register(an_experiment(priority="high"))
    await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert len(requested) == len(RUNS)
    assert {each.partitionkey for each in requested} == {f"high:{model}" for model in MODELS}


@pytest.mark.parametrize(("priority", "requests"), [("high", 1), ("normal", 2)])
async def test_a_raised_experiment_is_requested_again_unless_requests_of_high_priority_wait(
    healer, store, broker, clock, priority, requests
):
    await store.register(an_experiment(priority="high"))
    waiting = [
        RunRequested.of(run, source="planner", time=MONDAY, priority=priority) for run in RUNS
    ]
    await broker.publish([to_message(each) for each in waiting])
    for _ in range(3):
        await after(healer, clock, 2 * QUIET_SECONDS)
    assert await broker.depth(RUNNER_RUN_REQUESTED.name) == requests * len(RUNS)


async def test_a_plan_that_was_cut_off_is_published_to_its_end(broker, clock):
    store = MemoryStore()
    await store.register(EXPERIMENT)
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    await after(healer, clock, QUIET_SECONDS)
    assert len(await taken(broker, RUNNER_RUN_REQUESTED)) == len(RUNS)
    [running] = await store.running()
    assert running.planned_at == MONDAY
    assert healer.sent_again == {"plans": 1}
    await store.close()


async def test_a_response_without_a_score_and_a_failure_without_a_fold_are_published_again(
    healer, store, broker, clock
):
    answered, failed, *_ = RUNS
    response, failure = a_response(answered), a_failure(failed)
    await record_unleased(store, [response])
    await store.record_failures([RecordedFailure(failure, 0)])
    await after(healer, clock, QUIET_SECONDS)
    recorded, *copies = await taken(broker, JUDGE_RESPONSE_RECORDED)
    assert {each.id for each in copies} <= {recorded.id}
    [announced] = await taken(broker, CURATOR_RUN_FAILED)
    assert (recorded.data, announced.data) == (response, failure)


async def test_what_is_folded_to_the_end_is_complete_and_announced_as_such(
    healer, store, broker, clock
):
    await record_unleased(store, [a_response(run) for run in RUNS])
    await store.fold([a_score(run) for run in RUNS], [])
    async with broker.listen(COMPLETED) as announcements:
        await healer.reconcile()
        event = decode((await anext(aiter(announcements))).body)
    experiment = await store.experiment(EXPERIMENT.experiment_id)
    assert event.time == experiment.completed_at == MONDAY
    assert await store.running() == []


async def test_one_process_at_a_time_reconciles(store, broker, clock):
    one, two = (
        Reconciler(store, broker, clock, f"curator-{number}", monotonic=clock) for number in (1, 2)
    )
    await one.reconcile()
    await after(two, clock, QUIET_SECONDS)
    assert await taken(broker, RUNNER_RUN_REQUESTED) == []
    await one.leave()
    await after(two, clock, QUIET_SECONDS)
    assert len(await taken(broker, RUNNER_RUN_REQUESTED)) == len(RUNS)


async def test_what_a_newer_version_planned_is_left_to_it_and_keeps_nothing_from_being_healed(
    broker, clock, tmp_path
):
    store = SqlStore.from_url(await prepared_file(tmp_path / "benchmark.db"))
    await store.register(EXPERIMENT)
    await store.mark_planned(EXPERIMENT.experiment_id, MONDAY)
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    newer = an_experiment(occasion="newer")
    for name, age in (("exp-of-more-fields", 1), ("exp-unreadable", 2)):
        created_at = MONDAY + timedelta(minutes=age)
        more = newer.model_copy(update={"experiment_id": name, "created_at": created_at})
        await store.register(more)
    with closing(sqlite3.connect(tmp_path / "benchmark.db")) as connection:
        connection.execute(
            "UPDATE experiments SET manifest = json_set(manifest, '$.repeats', 'often') "
            "WHERE experiment_id = 'exp-unreadable'"
        )
        connection.commit()
    assert len(await store.running()) == 3
    with capture_logs() as logs:
        await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert {each.correlationid for each in requested} == {EXPERIMENT.experiment_id}
    left = [line["correlation_id"] for line in logs if line["event"] == "not reconciled"]
    assert sorted(left) == ["exp-of-more-fields", "exp-unreadable"]
    await store.close()


async def test_a_large_loss_is_requested_at_once_each_run_once_and_a_part_in_each_pass(
    healer, store, broker, clock, monkeypatch
):
    monkeypatch.setattr(reconciling, "MOST_A_PASS", 4)
    await healer.reconcile()
    clock.seconds += QUIET_SECONDS
    requested, more = [], True
    while more:
        more = await healer.reconcile()
        part = await taken(broker, RUNNER_RUN_REQUESTED)
        assert len(part) <= 4
        requested += (each.data.run for each in part)
        # Some end meanwhile: the others are lost all the same.
        await store.fold([a_score(each.data.run) for each in part[:1]], [])
    assert sorted(run.run_id for run in requested) == sorted(run.run_id for run in RUNS)


async def test_a_large_loss_of_one_experiment_leaves_each_pass_room_for_the_others(
    healer, store, broker, clock, monkeypatch
):
    monkeypatch.setattr(reconciling, "MOST_A_PASS", 4)
    other = await store.register(an_experiment(occasion="other"))
    await store.mark_planned(other.experiment_id, MONDAY)
    await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    counts = Counter(each.correlationid for each in requested)
    assert counts == {EXPERIMENT.experiment_id: 4, other.experiment_id: 4}


async def test_the_next_pass_follows_at_once_where_more_is_lost(healer, broker, clock, monkeypatch):
    monkeypatch.setattr(reconciling, "MOST_A_PASS", 4)
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 1_000_000)
    await healer.reconcile()
    clock.seconds += QUIET_SECONDS
    running = asyncio.create_task(healer.run())
    try:
        async with waiting_for("all requests"):
            requested = 0
            while requested < len(RUNS):
                requested += len(await taken(broker, RUNNER_RUN_REQUESTED))
                await asyncio.sleep(0)
    finally:
        await cancelled(running)
    assert requested == len(RUNS)
