"""Experiments that lose something on the way, and complete unaided; each turn is paid for once."""

import asyncio
import json
import signal

import pytest

from socratic_bench.consuming.queues import WORK_QUEUES
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import all_ready
from tests.servers import rabbitmq
from tests.servers.providers.endpoint import endpoint
from tests.waiting import until

pytestmark = pytest.mark.connected

MODEL = "vllm/endpoint"
HASTY = {
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.01",
    "SOCRATIC_RUNNER_BUSY_DELAY": "0.2",
    "SOCRATIC_CURATOR_QUIET": "3",
}
WORKERS = ("runner", "judge", "curator")
RUNS = 15


@pytest.fixture
def pace():
    return HASTY


@pytest.fixture
def terminal(services_terminal):
    return services_terminal


async def test_two_runs_of_a_benchmark_on_one_database_pay_once(terminal, store):
    async with endpoint() as model:
        config = terminal.write("b.yaml", model.config(repeats=2))
        both = await asyncio.gather(
            *(asyncio.to_thread(terminal.run, "run", config, "--json") for _ in range(2))
        )
    results = [json.loads(each.stdout) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert [each["done"] for each in results] == [2 * RUNS] * 2
    assert sum(each["model_calls"] for each in results) >= 2 * RUNS
    assert set(model.calls_of_a_turn.values()) == {1}
    assert len(model.asked) == 2 * RUNS
    await completed(store, results[0]["experiment_id"])


async def test_what_was_lost_with_every_queue_is_sent_again_and_nothing_is_paid_for_twice(
    terminal, addresses, environment, store
):
    async with endpoint() as model, all_ready(environment, *WORKERS):
        model.hold()
        experiment_id = await submitted(terminal, model.config(repeats=3))
        await model.until_asked(1)
        await model.answer_next(5)
        await model.until_asked(6)
        # Each process has connected by now: one that connects while queues are being deleted, one
        # after the other, declares some of them between two deletions.
        await until(
            lambda: store.progress(experiment_id), lambda it: it.done == 5, "five runs to be done"
        )
        await rabbitmq.delete(addresses["SOCRATIC_BROKER_URL"], WORK_QUEUES, [MODEL])
        await model.release()
        await completed(store, experiment_id)
    assert set(model.calls_of_a_turn.values()) == {1}
    assert (await store.calls(experiment_id)).calls == 3 * RUNS
    assert await dead_letters(addresses) == []


@pytest.mark.long
async def test_facts_that_were_purged_are_folded_all_the_same(
    terminal, addresses, environment, store
):
    async with endpoint() as model:
        async with all_ready(environment, "runner"):
            experiment_id = await submitted(terminal, model.config(repeats=1))
            experiment = await store.experiment(experiment_id)
            run_ids = [run.run_id for run in experiment.runs()]
            await until(
                lambda: store.responses(run_ids), lambda it: len(it) == RUNS, "all responses"
            )
        await rabbitmq.delete(addresses["SOCRATIC_BROKER_URL"], WORK_QUEUES, [MODEL])
        async with all_ready(environment, "judge", "curator"):
            await completed(store, experiment_id)
    assert len(model.asked) == RUNS
    assert await dead_letters(addresses) == []


@pytest.mark.long
async def test_services_that_are_frozen_for_longer_than_their_leases_change_nothing(
    terminal, addresses, environment, store
):
    async with (
        endpoint() as model,
        all_ready(environment, *WORKERS) as services,
        all_ready(environment, *WORKERS),
    ):
        model.hold()
        experiment_id = await submitted(terminal, model.config(repeats=2))
        await model.until_asked(1)
        for each in services.values():
            each.send_signal(signal.SIGSTOP)
        await model.release()
        await asyncio.sleep(
            20
        )  # what is tried is that time passes: a dead owner's leases last 15 s
        for each in services.values():
            each.send_signal(signal.SIGCONT)
        await completed(store, experiment_id)
    assert max(model.calls_of_a_turn.values()) <= 2
    calls = (await store.calls(experiment_id)).calls
    assert calls == len(model.asked)
    assert await dead_letters(addresses) == []


@pytest.mark.long
async def test_while_the_broker_takes_nothing_calls_go_on_and_are_made_once(
    tmp_path, environment, store, own_rabbitmq
):
    environment = {**environment, "SOCRATIC_BROKER_URL": own_rabbitmq.url}
    terminal = Terminal(tmp_path, environment)
    watermark = "vm_memory_monitor:set_vm_memory_high_watermark({})."
    async with endpoint() as model, all_ready(environment, *WORKERS) as services:
        model.hold()
        experiment_id = await submitted(terminal, model.config(repeats=1))
        experiment = await store.experiment(experiment_id)
        run_ids = [run.run_id for run in experiment.runs()]
        await model.until_asked(1)
        await asyncio.to_thread(own_rabbitmq.evaluate, watermark.format("{absolute, 1}"))
        await model.release()
        await services["runner"].logged("messages wait to be published")
        unready = await services["runner"].until_ready_is(503)
        await until(lambda: store.responses(run_ids), lambda it: len(it) == RUNS, "all responses")
        await asyncio.to_thread(own_rabbitmq.evaluate, watermark.format("0.6"))
        await completed(store, experiment_id)
        spending = await store.spending(experiment_id)
    assert unready.json()["reason"] == "the store or broker does not answer"
    assert set(model.calls_of_a_turn.values()) == {1}
    assert (await store.calls(experiment_id)).calls == RUNS
    assert spending.in_flight == 0
    assert await dead_letters(environment) == []
