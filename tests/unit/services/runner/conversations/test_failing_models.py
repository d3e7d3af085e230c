"""The runner and a failing model: its retries, their times, and calls that it no longer makes."""

import asyncio
from collections import Counter

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import (
    FailureKind,
    MissingCredential,
    ModelCallFailed,
    ModelUnusable,
    StoreRefused,
    StoreUnavailable,
)
from socratic_bench.events.event_types import RunFailed
from socratic_runner import bootstrap
from socratic_runner.limits import breaker
from tests.contract.store.facts import a_response, record_unleased
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    MODEL,
    SCENARIOS,
    SETTINGS,
    ScriptedClient,
    carry_out,
    reply,
)

OTHER = TutorModel(id="scripted/other")


@pytest.fixture
async def store():
    store = MemoryStore()
    yield store
    await store.close()


async def runs_of(store, *models, repeats=20):
    manifest = Manifest(models=models, scenarios=SCENARIOS[:1], repeats=repeats)
    experiment = await store.register(Experiment(manifest=manifest, created_at=TIME))
    return list(experiment.runs())


def kinds(events) -> Counter:
    return Counter(
        event.data.kind if isinstance(event, RunFailed) else event.data.status for event in events
    )


async def test_a_model_whose_key_is_refused_is_called_once_and_fails_all_of_its_runs(store):
    refused = ScriptedClient(lambda *_: ModelUnusable(FailureKind.AUTH, "401: no such key"))
    fine = ScriptedClient(lambda *_: reply())
    runs = await runs_of(store, MODEL, OTHER)
    events = await carry_out(store, {MODEL.id: refused, OTHER.id: fine}, *runs)
    assert kinds(events) == {"auth": 20, "ok": 20}
    assert len(refused.asked) == 1
    failures = [event.data for event in events if isinstance(event, RunFailed)]
    assert sorted(failure.attempts for failure in failures) == [0] * 19 + [1]
    assert Counter(failure.message for failure in failures) == {
        "401: no such key": 1,
        "not called: stopped after 401: no such key": 19,
    }


async def test_a_pause_beyond_the_deadline_of_runs_ends_the_run_that_waits_for_its_permit(store):
    pause = ModelCallFailed(
        FailureKind.RATE_LIMITED, "429: tomorrow", retryable=True, retry_after=36_000.0
    )

    async def script(_question, asked):
        if asked <= 3:
            return reply()
        await asyncio.sleep(50)  # the next call has its lease, and gives it back
        raise pause

    limits = Limits(concurrency=1, run_timeout_seconds=60, timeout_seconds=60)
    slow = TutorModel(id="scripted/slow", limits=limits)
    events = await carry_out(store, ScriptedClient(script), *await runs_of(store, slow))
    assert kinds(events) == {"ok": 3, "rate_limited": 17}


async def test_a_reply_that_the_store_cannot_hold_fails_its_run_alone_after_one_call(
    store, monkeypatch
):
    record = store.record

    async def refuse_large(responses, leases):
        if any(len(each.text) > 100 for each in responses):
            raise StoreRefused("the record takes 800,000 bytes; add ?bucket=…")
        return await record(responses, leases)

    monkeypatch.setattr(store, "record", refuse_large)
    texts = iter(["x" * 800] + ["Why?"] * 19)
    client = ScriptedClient(lambda *_: reply(next(texts)))
    events = await carry_out(store, {MODEL.id: client}, *await runs_of(store, MODEL))
    assert kinds(events) == {"unstorable": 1, "ok": 19}
    assert len(client.asked) == 20


async def test_calls_that_were_prepared_before_a_model_was_stopped_are_not_counted(store):
    async def script(question, asked):
        await asyncio.sleep(0.01)
        if asked == 30:
            raise ModelUnusable(FailureKind.NOT_FOUND, "404: taken down")
        return reply()

    client = ScriptedClient(script)
    narrow = MODEL.model_copy(update={"limits": Limits(concurrency=4)})
    runs = await runs_of(store, narrow, repeats=100)
    events = await carry_out(store, client, *runs)
    assert kinds(events)["not_found"] + kinds(events)["ok"] == 100
    made = await store.calls(runs[0].experiment_id)
    assert made.calls == made.turns == len(client.asked) < 100


async def test_a_lease_that_is_kept_waiting_is_given_back_and_taken_anew(store):
    async def script(*_):
        await asyncio.sleep(0.05)
        return reply()

    client = ScriptedClient(script)
    one_by_one = MODEL.model_copy(update={"limits": Limits(concurrency=1, timeout_seconds=5)})
    runs = await runs_of(store, one_by_one, repeats=8)
    hasty = SETTINGS.model_copy(update={"runner_lease_margin": 0.04})
    events = await carry_out(store, client, *runs, settings=hasty)
    assert kinds(events) == {"ok": 8}
    assert (await store.calls(runs[0].experiment_id)).calls == len(client.asked) == 8


async def test_a_lease_is_given_back_once_a_store_that_was_away_answers(store, monkeypatch):
    give_back, away = store.give_back_leases, [StoreUnavailable("restarting")] * 2

    async def give_back_later(leases):
        if away:
            raise away.pop()
        await give_back(leases)

    async def script(*_):
        await asyncio.sleep(0.05)
        return reply()

    monkeypatch.setattr(store, "give_back_leases", give_back_later)
    client = ScriptedClient(script)
    one_by_one = MODEL.model_copy(update={"limits": Limits(concurrency=1, timeout_seconds=5)})
    runs = await runs_of(store, one_by_one, repeats=5)
    hasty = SETTINGS.model_copy(update={"runner_lease_margin": 0.04})
    assert kinds(await carry_out(store, client, *runs, settings=hasty)) == {"ok": 5}
    assert away == []
    assert (await store.calls(runs[0].experiment_id)).calls == len(client.asked) == 5


async def test_a_lease_whose_grant_got_lost_is_given_back_if_the_turn_is_answered(
    store, monkeypatch
):
    [run] = await runs_of(store, MODEL, repeats=1)
    take, late = store.take_leases, a_response(run)

    async def lose_the_first_answer(leases, owner, *, may_judge):
        answers = await take(leases, owner, may_judge=may_judge)
        if not await store.responses([run.run_id]):
            assert answers == [LeaseAnswer.GRANTED]
            await record_unleased(store, [late])  # of an earlier owner
            raise StoreUnavailable("the connection is lost")
        return answers

    monkeypatch.setattr(store, "take_leases", lose_the_first_answer)
    client = ScriptedClient(lambda *_: reply())
    [event] = await carry_out(store, client, run)
    assert (event.data, client.asked) == (late, [])
    spending = await store.spending(run.experiment_id)
    assert (spending.committed, spending.in_flight) == (late.cost_nanodollars, 0)


async def test_a_failure_of_one_run_stops_no_other(store):
    def script(question, _):
        if question.run.repeat % 2:
            return ModelCallFailed(FailureKind.REFUSED, "filtered", retryable=False)
        return reply()

    events = await carry_out(store, ScriptedClient(script), *await runs_of(store, MODEL))
    assert kinds(events) == {"refused": 10, "ok": 10}


async def test_no_call_is_made_before_the_provider_asked_for_it(store):
    calls = []

    def script(_question, call):
        calls.append(asyncio.get_running_loop().time())
        if call == 1:
            return ModelCallFailed(FailureKind.RATE_LIMITED, "429", retryable=True, retry_after=0.3)
        return reply()

    events = await carry_out(store, ScriptedClient(script), *await runs_of(store, MODEL))
    assert kinds(events) == {"ok": 20}
    assert len(calls) == 21
    assert calls[1] - calls[0] >= 0.3


async def test_a_wait_longer_than_a_run_may_take_fails_its_runs_at_once(store):
    def script(*_):
        return ModelCallFailed(
            FailureKind.RATE_LIMITED, "quota of the day", retryable=True, retry_after=3600
        )

    client = ScriptedClient(script)
    events = await carry_out(store, client, *await runs_of(store, MODEL))
    assert kinds(events) == {"rate_limited": 20}
    assert len(client.asked) == 1


async def test_no_call_is_begun_after_the_deadline_of_a_run(store):
    def script(*_):
        return ModelCallFailed(FailureKind.RATE_LIMITED, "429", retryable=True, retry_after=0.9)

    hasty = MODEL.model_copy(update={"limits": Limits(run_timeout_seconds=2.0)})
    client = ScriptedClient(script)
    (event,) = await carry_out(store, client, *await runs_of(store, hasty, repeats=1))
    assert event.data.kind == "rate_limited"
    assert 2 <= len(client.asked) <= 3
    assert event.data.attempts == len(client.asked)


async def test_a_run_whose_deadline_passes_in_the_line_keeps_why_its_last_call_failed(store):
    async def slow():
        await asyncio.sleep(0.8)
        return reply()

    def script(question, _):
        if question.run.repeat == 1:
            return ModelCallFailed(FailureKind.RATE_LIMITED, "429: slow down", retryable=True)
        return slow()

    limits = Limits(run_timeout_seconds=0.5, timeout_seconds=5, concurrency=1)
    hasty = MODEL.model_copy(update={"limits": limits})
    events = await carry_out(store, ScriptedClient(script), *await runs_of(store, hasty, repeats=3))
    [failed] = [event.data for event in events if isinstance(event, RunFailed)]
    assert (failed.kind, failed.attempts) == ("rate_limited", 1)
    assert failed.message == (
        "the run's deadline of 0.5 s passed before another call could be made; "
        "the last call: 429: slow down"
    )


@pytest.mark.asyncio(loop_factories=["real time"])
async def test_a_model_that_is_busy_all_the_time_fails_its_runs_before_each_has_tried(
    store, monkeypatch
):
    monkeypatch.setattr(bootstrap, "BUSY_SILENCE", 0.3)

    def script(*_):
        return ModelCallFailed(FailureKind.UNREACHABLE, "nobody is there", retryable=True)

    client = ScriptedClient(script)
    patient = SETTINGS.model_copy(update={"runner_longest_delay": 0.05})
    runs = await runs_of(store, MODEL, repeats=100)
    events = await carry_out(store, client, *runs, settings=patient)
    assert kinds(events) == {"unreachable": 100}
    assert 4 <= len(client.asked) <= 100


@pytest.mark.asyncio(loop_factories=["real time"])
async def test_a_model_that_hangs_from_the_start_does_not_hang_all_of_its_runs(store, monkeypatch):
    async def hang():
        await asyncio.Event().wait()

    monkeypatch.setattr(breaker, "SILENCE", 0.5)
    client = ScriptedClient(lambda *_: hang())
    events = await carry_out(store, client, *await runs_of(store, MODEL, repeats=100))
    assert kinds(events) == {"timeout": 100}
    assert 4 <= len(client.asked) <= 20


async def test_a_missing_key_fails_the_runs_as_what_it_is(store):
    def open_client(_model):
        raise MissingCredential("model scripted/tutor: OPENAI_API_KEY is not set")

    (event,) = await carry_out(store, open_client, *await runs_of(store, MODEL, repeats=1))
    assert (event.data.kind, event.data.attempts) == ("auth", 0)
