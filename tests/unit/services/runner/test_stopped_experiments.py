"""Requests of a stopped experiment are settled without a call; a resumed one is carried out."""

import asyncio

import pytest

from socratic_bench.consuming.outcomes import Handled, Postponed
from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.domain.experiment.state import ExperimentState
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    MODEL,
    ONE,
    THREE,
    ScriptedClient,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)
from tests.waiting import until

ID = EXPERIMENT.experiment_id
PATIENT = EXPERIMENT.model_copy(
    update={
        "manifest": EXPERIMENT.manifest.model_copy(
            update={"models": (MODEL.model_copy(update={"limits": Limits()}),)}
        )
    }
)
"""The same experiment, whose calls may take as long as a busy machine needs."""
PAUSED, CANCELLED = ExperimentState.PAUSED, ExperimentState.CANCELLED
RESUMED, DELETED = ExperimentState.RESUMED, ExperimentState.DELETED


async def calls(store):
    return (await store.calls(ID)).calls


@pytest.mark.parametrize("state", [PAUSED, CANCELLED, DELETED])
async def test_requests_of_a_stopped_experiment_are_settled_before_anything_is_waited_for(
    store, state
):
    await store.change_state(ID, state)
    client = ScriptedClient(lambda *_: reply())
    works = [requested(ONE), requested(THREE)]
    async with parts_of_a_runner(store, client, most=1) as parts:
        with parts.pool.model(EXPERIMENT, MODEL.id).limiter.ticket(1):  # nobody else is admitted
            outcomes = await outcomes_of(parts.handler, *works)
    assert list(outcomes.values()) == [Handled(work) for work in works]
    assert client.asked == []
    assert await calls(store) == 0


async def test_a_request_that_comes_right_after_resuming_is_carried_out(store):
    client = ScriptedClient(lambda *_: reply())
    async with parts_of_a_runner(store, client) as parts:
        await outcomes_of(parts.handler, requested(ONE))  # the experiment is known to be open
        for state in (PAUSED, RESUMED):
            await store.change_state(ID, state)
            work = requested(THREE)
            assert isinstance((await outcomes_of(parts.handler, work))[work], Handled)
            assert len(client.asked) == (1 if state is PAUSED else 1 + 3)
    assert await calls(store) == 4


@pytest.mark.parametrize("state", [PAUSED, CANCELLED, DELETED])
async def test_the_call_in_flight_is_the_last_one_and_what_it_brings_is_published(store, state):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer_later():
        asked.set()
        await go_on.wait()
        return reply("Later?")

    await store.register(PATIENT)
    client = ScriptedClient(lambda *_: answer_later())
    work = requested(THREE)
    async with parts_of_a_runner(store, client) as parts:
        running = asyncio.create_task(outcomes_of(parts.handler, work))
        await asked.wait()
        await store.change_state(ID, state)
        go_on.set()
        [outcome] = (await running).values()
    assert isinstance(outcome, Handled)
    assert len(client.asked) == 1
    stored = (await store.responses([THREE.run_id])).get(THREE.run_id, [])
    assert [response.text for response in stored] == ([] if state is DELETED else ["Later?"])


async def test_a_call_that_was_prepared_does_not_begin_once_another_was_refused(store):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer_later():
        asked.set()
        await go_on.wait()
        return reply()

    await store.register(PATIENT)
    client = ScriptedClient(lambda *_: answer_later())
    first, second = requested(ONE), requested(THREE)
    async with parts_of_a_runner(store, client, most=1) as parts:
        opened = parts.pool.model(EXPERIMENT, MODEL.id)
        opened.limiter._latency_ms = 100.0  # a quick one: the next call is prepared meanwhile
        running = asyncio.create_task(outcomes_of(parts.handler, first, second))
        await asked.wait()
        await until(lambda: calls(store), lambda count: count == 2, "the second lease")
        await store.change_state(ID, PAUSED)
        lease = parts.runner.preparer.new_lease(opened, client.asked[0])
        await parts.leases.take([lease])
        go_on.set()
        outcomes = await running
    assert all(isinstance(outcome, Handled) for outcome in outcomes.values())
    assert len(client.asked) == 1
    assert await calls(store) == 1


async def test_a_request_that_joined_a_run_which_was_stopped_is_put_back(store):
    """It may have been made since the experiment was resumed."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer_later():
        asked.set()
        await go_on.wait()
        return reply()

    client = ScriptedClient(lambda *_: answer_later())
    first, second = requested(THREE), requested(THREE)
    async with parts_of_a_runner(store, client) as parts:
        both = asyncio.create_task(outcomes_of(parts.handler, first, second))
        await asked.wait()
        await store.change_state(ID, PAUSED)
        go_on.set()
        outcomes = await both
        assert isinstance(outcomes[first], Handled)
        assert isinstance(outcomes[second], Postponed)
        await store.change_state(ID, RESUMED)
        [outcome] = (await outcomes_of(parts.handler, second)).values()
        assert isinstance(outcome, Handled)
    assert len(client.asked) == 3
