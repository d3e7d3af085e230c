"""Another process does what a killed one had in hand.

A quiet machine takes less than 20 s for a runner's work, 5 s for a judge's or a curator's. The
numbers of the protocol show it for a runner; a wait in a test says more of the machine.
"""

import asyncio
import signal

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import (
    BROADCASTS,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.domain.leasing import DEAD_AFTER_SECONDS
from socratic_runner.conversations.conversation_runner import HELD_LOOKS, HELD_PAUSE
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready, started
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.endpoint import endpoint
from tests.waiting import until

RUNNER_SECONDS = 20.0
RUNS = 15
BEFORE = {"judge": ("runner", RUNNER_RUN_REQUESTED), "curator": ("judge", JUDGE_RESPONSE_RECORDED)}
"""Whose work each waits for, and the queue of that."""

REPLACED = pytest.mark.parametrize(
    "is_there_before", [True, pytest.param(False, marks=pytest.mark.long)], ids=["beside", "after"]
)
"""Whether another process is there already, or is started in the place of the killed one."""


@pytest.fixture
async def environment():
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        yield {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": store}


@pytest.fixture
async def store(environment):
    store = open_store(environment["SOCRATIC_STORE_URL"])
    yield store
    await store.close()


@pytest.fixture
async def broker(environment):
    broker = open_broker(environment["SOCRATIC_BROKER_URL"])
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


async def submitted(tmp_path, environment, config) -> str:
    terminal = Terminal(tmp_path, environment)
    done = await asyncio.to_thread(terminal.run, "submit", terminal.write("b.yaml", config))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def kill(service):
    service.kill()
    assert await service.ended() == -signal.SIGKILL


def test_by_the_protocol_a_dead_runner_is_known_in_time():
    assert DEAD_AFTER_SECONDS + HELD_PAUSE < RUNNER_SECONDS
    assert DEAD_AFTER_SECONDS < HELD_LOOKS * HELD_PAUSE


@pytest.mark.connected
@pytest.mark.long
@pytest.mark.parametrize("is_there_before", [True, False], ids=["beside", "after"])
async def test_what_a_killed_runner_asked_is_asked_again_by_another(
    tmp_path, environment, is_there_before
):
    async with endpoint() as model, all_ready(environment, "runner") as services:
        model.hold()
        await submitted(tmp_path, environment, model.config(repeats=1))
        await model.until_asked(1)
        await model.answer_next(1)
        await model.until_asked(9)
        first = set(model.asked[1:])
        another = started("runner", environment)
        if is_there_before:
            async with another as runner:
                await runner.ready()
                await kill(services["runner"])
                await model.release()
                await asked_again(model, first)
        else:
            await kill(services["runner"])
            await model.release()
            async with another:
                await asked_again(model, first)


async def asked_again(model, seeds) -> None:
    """Wait until all of these turns are asked for again."""

    async def asked():
        return model.calls_of_a_turn

    await until(
        asked,
        lambda calls: all(calls[seed] > 1 for seed in seeds),
        "what was in hand to be asked again",
    )


@pytest.mark.connected
@REPLACED
@pytest.mark.parametrize("kind", ["judge", "curator"])
async def test_what_a_killed_process_had_in_hand_is_done_by_another(
    tmp_path, environment, store, broker, kind, is_there_before
):
    before, queue_before = BEFORE[kind]
    async with (
        endpoint() as model,
        all_ready(environment, "runner", "judge", "curator") as services,
    ):
        # What is frozen has in hand what the broker sends it at first.
        services[kind].send_signal(signal.SIGSTOP)
        experiment_id = await submitted(tmp_path, environment, model.config(repeats=1))
        await until(
            lambda: services[before].metric(
                "socratic_messages_total", queue=queue_before.name, outcome="handled"
            ),
            lambda handled: handled == RUNS,
            f"all runs handled by the {before}",
        )
        assert (await store.progress(experiment_id)).done == 0
        another = started(kind, environment)
        if is_there_before:
            async with another as service:
                await service.ready()
                await kill(services[kind])
                await all_done(store, experiment_id)
        else:
            await kill(services[kind])
            async with another:
                await all_done(store, experiment_id)
        dead = [await broker.dead_letter_depth(queue.name) for queue in WORK_QUEUES]
    assert dead == [0] * len(WORK_QUEUES)


async def all_done(store, experiment_id) -> None:
    await until(
        lambda: store.progress(experiment_id), lambda progress: progress.done == RUNS, "all runs"
    )
