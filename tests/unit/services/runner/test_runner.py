"""The runner: a response is stored before anything else, and no model is asked twice for one."""

import asyncio
from dataclasses import replace

import pytest
import structlog

from socratic_bench.consuming.outcomes import Postponed, Rejected
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, InvalidInput, ModelCallFailed, StoreUnavailable
from socratic_bench.events.event_types import ResponseRecorded, RunFailed
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.scoring.exchange import Status
from socratic_runner.conversations.conversation import Conversation, TurnFailed, TurnPutOff
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import ModelPool
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    MODEL,
    ONE,
    SCENARIOS,
    THREE,
    ScriptedClient,
    carry_out,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)
from tests.waiting import waiting_for


async def test_a_response_is_recorded_whole_and_published(store):
    (event,) = await carry_out(store, ScriptedClient(lambda *_: reply()), ONE)
    assert isinstance(event, ResponseRecorded)
    response = event.data
    assert (response.text, response.status, response.last_turn) == (reply().text, "ok", True)
    assert response.student_message == "Help?"
    assert response.cost_nanodollars == 100 * 1_000 + (10 + 5) * 2_000
    assert (await store.responses([ONE.run_id]))[ONE.run_id] == [response]


@pytest.mark.parametrize(
    "change",
    [
        {"repeat": 2},
        {"repeat": 100_000, "run_id": "run-none"},
        {"run_id": "run-none"},
        {"scenario_id": "none"},
        {"model_id": "scripted/other"},
        {"dimension": "other"},
    ],
)
async def test_a_run_that_no_plan_holds_is_rejected_without_a_call(store, change):
    client = ScriptedClient(lambda *_: reply())
    forged = ONE.model_copy(update=change)
    async with parts_of_a_runner(store, client) as parts:
        (outcome,) = (await outcomes_of(parts.handler, requested(forged))).values()
    assert isinstance(outcome, Rejected)
    assert outcome.reason.startswith("not in the plan")
    assert client.asked == []
    assert await store.responses([forged.run_id]) == {}
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 0


async def test_a_stored_response_is_published_again_and_no_model_is_called(store):
    client = ScriptedClient(lambda *_: reply())
    first = await carry_out(store, client, ONE)

    def nobody(_model):
        raise AssertionError("no client is needed for what is stored")

    assert await carry_out(store, nobody, ONE) == first
    assert len(client.asked) == 1
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 1


async def test_turns_follow_each_other_and_carry_what_was_said(store):
    client = ScriptedClient(lambda question, _: reply(f"And {question.student_message}"))
    events = await carry_out(store, client, THREE)
    assert [(e.data.turn, e.data.last_turn) for e in events] == [(1, False), (2, False), (3, True)]
    asked = [[(t.student, t.tutor) for t in q.earlier_turns] for q in client.asked]
    assert asked == [[], [("A?", "And A?")], [("A?", "And A?"), ("B?", "And B?")]]
    assert len({question.seed for question in client.asked}) == 3


async def test_each_turn_carries_the_key_of_its_scenario(store):
    scenarios = [each.model_copy(update={"key": ("0 N", "zero")}) for each in SCENARIOS]
    plan = Manifest.model_validate(EXPERIMENT.manifest.model_dump() | {"scenarios": scenarios})
    experiment = Experiment(manifest=plan, created_at=TIME)
    await store.register(experiment)
    run = next(each for each in experiment.runs() if each.scenario_id == THREE.scenario_id)
    events = await carry_out(store, ScriptedClient(lambda *_: reply()), run)
    assert [event.data.answer_key for event in events] == [("0 N", "zero")] * 3
    stored = await store.responses([run.run_id])
    assert stored[run.run_id] == [event.data for event in events]


def first_turn_alone(question, _):
    if question.turn == 2:
        return ModelCallFailed(FailureKind.AUTH, "no key", retryable=False)
    return reply(f"first {question.turn}")


async def test_a_run_that_was_cut_off_goes_on_at_its_first_missing_turn(store):
    *_, failed = await carry_out(store, ScriptedClient(first_turn_alone), THREE)
    assert isinstance(failed, RunFailed)
    assert (failed.data.turn, failed.data.kind) == (2, "auth")
    client = ScriptedClient(lambda question, _: reply(f"later {question.turn}"))
    events = await carry_out(store, client, THREE, retry=1)
    assert [question.turn for question in client.asked] == [2, 3]
    assert [event.data.text for event in events] == ["first 1", "later 2", "later 3"]


async def test_what_an_ended_runner_stored_is_published_before_the_next_call_ends(store):
    """A curator would take it for lost, however slow the model is."""
    first, _ = await carry_out(store, ScriptedClient(first_turn_alone), THREE)
    go_on = asyncio.Event()

    async def slow():
        await go_on.wait()
        return reply()

    async with parts_of_a_runner(store, ScriptedClient(lambda *_: slow())) as parts:
        handling = parts.handler([requested(THREE, retry=1)])
        async with waiting_for("stored turns"):
            [emitted] = await anext(handling)
        assert [event.data for event in emitted.publish] == [first.data]
        go_on.set()
        async for _ in handling:
            pass


async def test_a_request_to_try_again_is_not_answered_by_the_failure_it_came_in_on(store):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def fail():
        asked.set()
        await go_on.wait()
        raise ModelCallFailed(FailureKind.AUTH, "no key", retryable=False)

    client = ScriptedClient(lambda _, call: fail() if call == 1 else reply())
    first, again = requested(ONE), requested(ONE, retry=1)
    async with parts_of_a_runner(store, client) as parts:
        both = asyncio.create_task(outcomes_of(parts.handler, first, again))
        await asked.wait()
        go_on.set()
        outcomes = await both
        assert isinstance(outcomes[first].publish[-1], RunFailed)
        assert isinstance(outcomes[again], Postponed)
        outcomes = await outcomes_of(parts.handler, again)
    assert isinstance(outcomes[again].publish[-1], ResponseRecorded)
    assert len(client.asked) == 2


async def test_a_passing_fault_is_retried_and_every_call_counted(store):
    def busy_twice(_, call):
        if call < 3:
            return ModelCallFailed(FailureKind.OVERLOADED, "busy", retryable=True)
        return reply()

    (event,) = await carry_out(store, ScriptedClient(busy_twice), ONE)
    assert event.data.attempts == 3
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 3


@pytest.mark.parametrize(
    ("failure", "kind", "attempts"),
    [
        (ModelCallFailed(FailureKind.RATE_LIMITED, "429", retryable=True), "rate_limited", 5),
        (ModelCallFailed(FailureKind.CUT_STREAM, "half", retryable=True), "cut_stream", 3),
        (ModelCallFailed(FailureKind.AUTH, "401", retryable=False), "auth", 1),
        (RuntimeError("a bug in the client"), "unknown", 1),
    ],
)
@pytest.mark.filterwarnings("ignore")
async def test_a_run_that_cannot_be_had_fails_with_its_class(store, failure, kind, attempts):
    (event,) = await carry_out(store, ScriptedClient(lambda *_: failure), ONE)
    assert isinstance(event, RunFailed)
    assert (event.data.kind, event.data.attempts) == (kind, attempts)
    assert str(failure) in event.data.message


async def test_a_call_that_hangs_ends_at_its_deadline(store):
    async def hang():
        await asyncio.Event().wait()

    (event,) = await carry_out(store, ScriptedClient(lambda *_: hang()), ONE)
    assert event.data.kind == "timeout"
    assert event.data.message.startswith("no answer within 0.2 s; ")


async def test_a_client_that_gives_up_its_own_call_does_not_end_the_runner(store):
    def gives_up_once(_, call):
        return give_up() if call == 1 else reply()

    async def give_up():
        raise asyncio.CancelledError

    (event,) = await carry_out(store, ScriptedClient(gives_up_once), ONE)
    assert event.data.attempts == 2


async def test_a_reply_that_is_no_valid_text_fails_its_own_run_alone(store):
    def script(question, _):
        return reply("half \ud800 a character" if question.run == ONE else "What?")

    client = ScriptedClient(script)
    events = await carry_out(store, client, ONE, THREE)
    kinds = {type(event).__name__ for event in events if event.data.run == ONE}
    assert kinds == {"RunFailed"}
    assert [event.data.turn for event in events if event.data.run == THREE] == [1, 2, 3]
    assert len(client.asked) == 4


async def test_a_model_that_cannot_be_opened_fails_its_runs_with_the_reason(store):
    def open_client(_model):
        raise InvalidInput("scripted/tutor: not installed")

    (event,) = await carry_out(store, open_client, ONE)
    assert (event.data.kind, event.data.attempts) == ("bad_request", 0)
    assert event.data.message == "scripted/tutor: not installed"


@pytest.mark.parametrize(
    ("given", "stored"),
    [(reply(" \n"), "empty"), (reply("no", Status.REFUSED), "refused")],
)
async def test_what_is_no_answer_is_recorded_as_what_it_is(store, given, stored):
    (event,) = await carry_out(store, ScriptedClient(lambda *_: given), ONE)
    assert event.data.status == stored


async def test_every_client_is_closed_though_one_fails_and_nobody_waits_for_it():
    class Closing(ScriptedClient):
        async def close(self):
            begun.set()
            await end.wait()
            await super().close()

    class Broken(ScriptedClient):
        async def close(self):
            raise OSError("already gone")

    begun, end = asyncio.Event(), asyncio.Event()
    clients = [Broken(None), Closing(None), ScriptedClient(None)]
    models = [TutorModel(id=f"scripted/{number}") for number in range(3)]
    manifest = Manifest(models=tuple(models), scenarios=SCENARIOS, repeats=1)
    experiment = Experiment(manifest=manifest, created_at=TIME)
    pool = ModelPool(lambda model: clients[models.index(model)], ConcurrencyLimiters(most=1))
    for model in models:
        pool.model(experiment, model.id)
    closing = asyncio.create_task(pool.close())
    await begun.wait()
    closing.cancel()
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert [client.closed for client in clients] == [False, True, True]


async def test_a_failed_run_that_comes_again_is_not_called_again(store):
    failing = ScriptedClient(lambda *_: ModelCallFailed(FailureKind.AUTH, "401", retryable=False))
    [first] = await carry_out(store, failing, ONE)
    [again] = await carry_out(store, ScriptedClient(lambda *_: reply()), ONE)
    assert (first.id, first.data) == (again.id, again.data)
    [retried] = await carry_out(store, ScriptedClient(lambda *_: reply()), ONE, retry=1)
    assert retried.data.text == reply().text
    assert len(failing.asked) == 1


async def test_a_failure_is_stored_before_it_is_published(store):
    client = ScriptedClient(lambda *_: ModelCallFailed(FailureKind.AUTH, "401", retryable=False))
    async with parts_of_a_runner(store, client) as parts:
        [outcome] = (await outcomes_of(parts.handler, requested(ONE))).values()
    [event] = outcome.publish
    assert (await store.recorded_failures([ONE.run_id]))[ONE.run_id].failure == event.data


async def test_token_counts_that_cannot_be_true_are_no_reply(store):
    def script(_question, call):
        usage = Usage(visible_output_tokens=250_000_000_000 if call == 1 else 10, input_tokens=5)
        return replace(reply(), usage=usage)

    [event] = await carry_out(store, ScriptedClient(script), ONE)
    assert event.data.kind == "malformed_reply"
    assert "250000000000 written" in event.data.message


class FourCalls:
    """Three calls to a model in a row, the third one slow; meanwhile a fourth is prepared."""

    def __init__(self, parts, store, experiment, client):
        self.store, self.id, self.parts, self.client = (
            store,
            experiment.experiment_id,
            parts,
            client,
        )
        self.prepared, self.answer = asyncio.Event(), asyncio.Event()
        self.take = store.take_leases
        store.take_leases = self._take
        client.script = self._script
        model = parts.pool.model(experiment, MODEL.id)
        self.conversations = [Conversation(run, experiment) for run in experiment.runs()]
        self.made = [
            asyncio.create_task(parts.runner.run(model, each, lambda: None))
            for each in self.conversations
        ]

    @property
    def fourth(self):
        return self.conversations[3]

    async def _script(self, _, asked):
        if asked == 3:
            await self.answer.wait()
        return reply()

    async def _take(self, claims, owner, **judging):
        answers = await self.take(claims, owner, **judging)
        if len(self.client.asked) == 3:
            self.prepared.set()
        return answers

    async def committed(self):
        return (await self.store.spending(self.id)).committed

    def drain(self):
        self.parts.draining.set()
        self.parts.limiters.close()

    def cancel(self):
        self.made[3].cancel()

    async def end_of_the_fourth(self):
        try:
            await self.made[3]
        except asyncio.CancelledError:
            return "cancelled"
        ending = self.fourth.ended_by
        return ending.failure.kind if isinstance(ending, TurnFailed) else type(ending)


@pytest.mark.parametrize(
    ("happens", "end"),
    [(FourCalls.drain, TurnPutOff), (FourCalls.cancel, "cancelled"), (None, "timeout")],
)
async def test_a_call_that_was_prepared_and_is_not_made_leaves_nothing_behind(store, happens, end):
    limits = Limits(timeout_seconds=30, run_timeout_seconds=30)
    manifest = Manifest(
        models=(MODEL.model_copy(update={"limits": limits}),), scenarios=SCENARIOS[:1], repeats=4
    )
    experiment = await store.register(Experiment(manifest=manifest, created_at=TIME))
    client = ScriptedClient(None)
    async with parts_of_a_runner(store, client, most=1) as parts:
        calls = FourCalls(parts, store, experiment, client)
        if not happens:  # the deadline of its run passes, which began with an earlier call
            calls.fourth.called_at = asyncio.get_running_loop().time() - 29
        await calls.prepared.wait()
        reserved = await calls.committed()
        if happens:
            happens(calls)
        assert await calls.end_of_the_fourth() == end
        calls.answer.set()
        await asyncio.gather(*calls.made[:3])
    assert [len(each.responses) for each in calls.conversations] == [1, 1, 1, 0]
    assert (await store.calls(calls.id)).calls == len(client.asked) == 3
    one_reserve = reserved - 2 * (100 * 1_000 + 15 * 2_000)
    assert await calls.committed() < reserved + one_reserve
    claim = Lease(LeaseKey(calls.id, calls.fourth.run.run_id, 1, "theirs"), 60.0)
    assert await calls.take([claim], "runner-2") == [LeaseAnswer.GRANTED]


async def test_a_response_waits_for_a_store_that_is_away_and_is_not_asked_for_again(
    store, monkeypatch
):
    record, refused = store.record, []

    async def refuse_once(responses, lease_ids):
        if not refused:
            refused.append(responses)
            raise StoreUnavailable("restarting")
        return await record(responses, lease_ids)

    monkeypatch.setattr(store, "record", refuse_once)
    client = ScriptedClient(lambda *_: reply())
    (event,) = await carry_out(store, client, ONE)
    assert event.data == refused[0][0]
    assert len(client.asked) == 1
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 1


async def test_what_a_model_client_logs_is_about_its_run(store):
    def script(*_):
        raise RuntimeError("a bug in the client")

    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await carry_out(store, ScriptedClient(script), ONE)
    (line,) = [line for line in lines if line["event"] == "model client failed"]
    assert (line["run_id"], line["correlation_id"]) == (ONE.run_id, ONE.experiment_id)


async def test_no_more_calls_are_in_flight_than_the_model_allows(store):
    in_flight = highest = 0

    async def slow():
        nonlocal in_flight, highest
        in_flight += 1
        highest = max(highest, in_flight)
        for _ in range(20):
            await asyncio.sleep(0)
        in_flight -= 1
        return reply()

    limited = MODEL.model_copy(update={"limits": Limits(concurrency=2)})
    experiment = Experiment(
        manifest=Manifest(models=(limited,), scenarios=SCENARIOS[:1], repeats=8), created_at=TIME
    )
    await store.register(experiment)
    events = await carry_out(store, ScriptedClient(lambda *_: slow()), *experiment.runs())
    assert len(events) == 8
    assert highest == 2


async def test_clients_are_closed_in_the_end(store):
    client = ScriptedClient(lambda *_: reply())
    await carry_out(store, client, ONE)
    assert client.closed
