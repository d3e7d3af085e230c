"""A run that is in hand already, here or at another runner, is not carried out twice."""

import asyncio
from unittest.mock import Mock

import pytest

from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.consuming.outcomes import Handled, Postponed
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_runner.conversations import conversation_runner
from socratic_runner.conversations.conversation import Conversation
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    MODEL,
    ONE,
    THREE,
    ScriptedClient,
    carry_out,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)
from tests.waiting import until, waiting_for


async def test_a_request_of_a_run_in_hand_is_settled_with_the_first(store):
    answer = asyncio.Event()

    async def script():
        await answer.wait()
        return reply()

    client = ScriptedClient(lambda *_: script())
    first, second = requested(ONE), requested(ONE)
    async with parts_of_a_runner(store, client) as parts, asyncio.TaskGroup() as tasks:
        one = tasks.create_task(outcomes_of(parts.handler, first))
        await block(lambda: client.asked)
        other = tasks.create_task(outcomes_of(parts.handler, second))
        await asyncio.sleep(0)
        answer.set()
    assert (await one)[first].publish == (await other)[second].publish
    assert isinstance((await other)[second], Handled)
    assert len(client.asked) == 1


async def test_a_handler_that_is_ended_early_takes_its_runs_in_hand_again(store):
    await carry_out(store, ScriptedClient(lambda *_: reply()), ONE)
    client = ScriptedClient(lambda *_: reply())
    async with parts_of_a_runner(store, client) as parts:
        outcomes = parts.handler([requested(ONE), requested(THREE)])
        assert [type(each) for each in await anext(outcomes)] == [Handled]
        await outcomes.aclose()
        [outcome] = (await outcomes_of(parts.handler, requested(THREE))).values()
    assert isinstance(outcome, Handled)


@pytest.mark.parametrize("at_once", [False, True], ids=["slow model", "instant model"])
async def test_a_reply_that_waits_for_the_store_is_not_paid_for_twice(store, monkeypatch, at_once):
    """As in a function whose invocation ends while the table takes nothing."""
    takes_replies, record = asyncio.Event(), store.record

    async def record_late(responses, lease_ids):
        await takes_replies.wait()
        return await record(responses, lease_ids)

    monkeypatch.setattr(store, "record", record_late)
    client = ScriptedClient(lambda *_: reply())
    client.answers_at_once = at_once
    first, second = requested(ONE), requested(ONE)
    async with waiting_for("the runs"), parts_of_a_runner(store, client) as parts:
        recorder = parts.runner.recorder
        cut_off = asyncio.create_task(outcomes_of(parts.handler, first))
        await block(lambda: recorder.keeps(ONE.run_id, 1))
        await cancelled(cut_off)
        kept = Mock(wraps=recorder.kept)
        monkeypatch.setattr(recorder, "kept", kept)
        again = asyncio.create_task(outcomes_of(parts.handler, second))
        await block(lambda: kept.called or len(client.asked) > 1)
        takes_replies.set()
        [outcome] = (await again).values()
    assert isinstance(outcome, Handled)
    assert [each.subject for each in outcome.publish] == [ONE.run_id]
    assert len(client.asked) == 1


async def block(seen):
    """Wait until something is seen."""

    async def look():
        return seen()

    await until(look, bool, "what the test waits for")


async def hold(store, seconds):
    """Have another runner hold the lease of the first turn of ONE."""
    lease = LeaseKey(ONE.experiment_id, ONE.run_id, 1, "theirs")
    assert await store.take_leases([Lease(lease, seconds)], "runner-2") == [LeaseAnswer.GRANTED]
    return lease


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr(conversation_runner, "HELD_PAUSE", 0.01)


@pytest.mark.usefixtures("quick_looks")
async def test_a_turn_that_another_runner_asks_for_is_left_to_it(store):
    await hold(store, seconds=300)
    client = ScriptedClient(lambda *_: reply())
    async with parts_of_a_runner(store, client) as parts:
        work = requested(ONE)
        reason = "another runner is asking for this turn"
        assert await outcomes_of(parts.handler, work) == {work: Postponed(work, 1.0, reason)}
    assert client.asked == []


@pytest.mark.usefixtures("quick_looks")
async def test_a_turn_that_another_runner_answers_meanwhile_is_not_asked_for(store):
    theirs = await hold(store, seconds=300)
    client, looks, take = ScriptedClient(lambda *_: reply()), [], store.take_leases

    async def take_leases(claims, owner, **judging):
        looks.append(owner)
        if len(looks) == 3:
            async with parts_of_a_runner(store, client, owner="runner-2") as others:
                conversation = Conversation(ONE, EXPERIMENT)
                model = others.pool.model(EXPERIMENT, MODEL.id)
                question = conversation.question()
                conversation.call_begins(0.0)
                given = conversation.response(question, reply("theirs"), model, TIME)
            await store.record([given], [theirs.lease_id])
        return await take(claims, owner, **judging)

    store.take_leases = take_leases
    [event] = await carry_out(store, client, ONE)
    assert event.data.text == "theirs"
    assert client.asked == []


@pytest.mark.usefixtures("quick_looks")
async def test_what_a_runner_that_left_held_goes_on_at_once(store):
    await hold(store, seconds=300)
    await store.leave("runner-2")
    client = ScriptedClient(lambda *_: reply())
    [event] = await carry_out(store, client, ONE)
    assert event.data.text == reply().text
    assert len(client.asked) == 1
