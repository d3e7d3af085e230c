"""The runner: a response is stored before anything else, and no model is asked twice for one."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest
import structlog

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.consuming.outcomes import Handled, Postponed, Work
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.errors import InvalidInput, ModelCallFailed, StoreUnavailable
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.models import FailureKind, Reply
from socratic_bench.ports.store import Claim, TurnKey
from socratic_bench.scoring.statuses import Status
from socratic_runner.bootstrap import give_back_leases, take_leases
from socratic_runner.budgets import Budgets
from socratic_runner.calls import Calls
from socratic_runner.clients import TutorPool
from socratic_runner.conversation import Conversation, TurnPutOff
from socratic_runner.experiments import Experiments
from socratic_runner.handlers import RunCarrier
from socratic_runner.limits.retries import Retries
from socratic_runner.limits.scopes import Gates
from socratic_runner.turn_taking import TurnTaking
from tests.unit.events.examples import TIME
from tests.unit.services.scripted import (
    EXPERIMENT,
    MODEL,
    ONE,
    SCENARIOS,
    SETTINGS,
    THREE,
    ScriptedTutor,
    carry_out,
    reply,
)


@pytest.fixture
async def store(tmp_path):
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await store.register(EXPERIMENT)
    yield store
    await store.close()


async def test_a_response_is_recorded_whole_and_published(store):
    (event,) = await carry_out(store, ScriptedTutor(lambda *_: reply()), ONE)
    assert isinstance(event, ResponseRecorded)
    response = event.data
    assert (response.text, response.status, response.last_turn) == (reply().text, "ok", True)
    assert response.student_message == "Help?"
    assert response.cost_nanodollars == 100 * 1_000 + (10 + 5) * 2_000
    assert (await store.responses([ONE.run_id]))[ONE.run_id] == [response]


async def test_a_stored_response_is_published_again_and_no_model_is_called(store):
    tutor = ScriptedTutor(lambda *_: reply())
    first = await carry_out(store, tutor, ONE)

    def nobody(_model):
        raise AssertionError("no client is needed for what is stored")

    assert await carry_out(store, nobody, ONE) == first
    assert len(tutor.asked) == 1
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 1


async def test_turns_follow_each_other_and_carry_what_was_said(store):
    tutor = ScriptedTutor(lambda question, _: reply(f"And {question.student_message}"))
    events = await carry_out(store, tutor, THREE)
    assert [(e.data.turn, e.data.last_turn) for e in events] == [(1, False), (2, False), (3, True)]
    asked = [[(t.student, t.tutor) for t in q.earlier_turns] for q in tutor.asked]
    assert asked == [[], [("A?", "And A?")], [("A?", "And A?"), ("B?", "And B?")]]
    assert len({question.seed for question in tutor.asked}) == 3


async def test_a_run_that_was_cut_off_goes_on_at_its_first_missing_turn(store):
    def fails_at_turn_2(question, _):
        if question.turn == 2:
            return ModelCallFailed(FailureKind.AUTH, "no key", retryable=False)
        return reply(f"first {question.turn}")

    *_, failed = await carry_out(store, ScriptedTutor(fails_at_turn_2), THREE)
    assert isinstance(failed, RunFailed)
    assert (failed.data.turn, failed.data.kind) == (2, "auth")
    tutor = ScriptedTutor(lambda question, _: reply(f"later {question.turn}"))
    events = await carry_out(store, tutor, THREE)
    assert [question.turn for question in tutor.asked] == [2, 3]
    assert [event.data.text for event in events] == ["first 1", "later 2", "later 3"]


async def test_a_passing_fault_is_retried_and_every_call_counted(store):
    def busy_twice(_, call):
        if call < 3:
            return ModelCallFailed(FailureKind.OVERLOADED, "busy", retryable=True)
        return reply()

    (event,) = await carry_out(store, ScriptedTutor(busy_twice), ONE)
    assert event.data.attempts == 3
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 3


@pytest.mark.parametrize(
    ("failure", "kind", "attempts"),
    [
        (ModelCallFailed("rate_limited", "429", retryable=True), "rate_limited", 5),
        (ModelCallFailed("cut_stream", "half", retryable=True), "cut_stream", 3),
        (ModelCallFailed("auth", "401", retryable=False), "auth", 1),
        (RuntimeError("a bug in the client"), "unknown", 1),
    ],
)
@pytest.mark.filterwarnings("ignore")
async def test_a_run_that_cannot_be_had_fails_with_its_class(store, failure, kind, attempts):
    (event,) = await carry_out(store, ScriptedTutor(lambda *_: failure), ONE)
    assert isinstance(event, RunFailed)
    assert (event.data.kind, event.data.attempts) == (kind, attempts)
    assert str(failure) in event.data.message


async def test_a_call_that_hangs_ends_at_its_deadline(store):
    async def hang():
        await asyncio.Event().wait()

    (event,) = await carry_out(store, ScriptedTutor(lambda *_: hang()), ONE)
    assert (event.data.kind, event.data.message) == ("timeout", "no answer within 0.2 s")


async def test_a_client_that_gives_up_its_own_call_does_not_end_the_runner(store):
    def gives_up_once(_, call):
        return give_up() if call == 1 else reply()

    async def give_up():
        raise asyncio.CancelledError

    (event,) = await carry_out(store, ScriptedTutor(gives_up_once), ONE)
    assert event.data.attempts == 2


async def test_a_reply_that_is_no_valid_text_fails_its_own_run_alone(store):
    def script(question, _):
        return reply("half \ud800 a character" if question.run == ONE else "What?")

    tutor = ScriptedTutor(script)
    events = await carry_out(store, tutor, ONE, THREE)
    kinds = {type(event).__name__ for event in events if event.data.run == ONE}
    assert kinds == {"RunFailed"}
    assert [event.data.turn for event in events if event.data.run == THREE] == [1, 2, 3]
    assert len(tutor.asked) == 4


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
    (event,) = await carry_out(store, ScriptedTutor(lambda *_: given), ONE)
    assert event.data.status == stored


async def test_every_client_is_closed_though_one_fails_and_nobody_waits_for_it():
    class Closing(ScriptedTutor):
        async def close(self):
            begun.set()
            await end.wait()
            await super().close()

    class Broken(ScriptedTutor):
        async def close(self):
            raise OSError("already gone")

    begun, end = asyncio.Event(), asyncio.Event()
    clients = [Broken(None), Closing(None), ScriptedTutor(None)]
    models = [TutorModel(id=f"scripted/{number}") for number in range(3)]
    manifest = Manifest(models=models, scenarios=SCENARIOS, repeats=1)
    experiment = Experiment(manifest=manifest, created_at=TIME)
    pool = TutorPool(lambda model: clients[models.index(model)], Gates(most=1))
    for model in models:
        pool.tutor(experiment, model.id)
    closing = asyncio.create_task(pool.close())
    await begun.wait()
    closing.cancel()
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert [client.closed for client in clients] == [False, True, True]


async def test_runs_whose_outcomes_could_not_be_published_are_carried_out_when_they_come_again(
    store,
):
    await carry_out(store, ScriptedTutor(lambda *_: reply()), ONE)
    tutor, clock, draining = ScriptedTutor(lambda *_: reply()), SystemClock(), asyncio.Event()

    lease, give_back = partial(take_leases, store, "a"), partial(give_back_leases, store, "a")
    margin, budgets = timedelta(seconds=5), Budgets(store, clock)
    calls = Calls(lease, give_back, give_back, budgets, clock, margin, draining)
    turn_taking = TurnTaking(calls, store.record, clock, partial(Retries, RetryPolicy()), draining)
    tutors = TutorPool(lambda _: tutor, Gates(most=10))
    carrier = RunCarrier(store, Experiments(store), tutors, turn_taking, clock, busy_delay=1)
    answered, due = [
        Work(RunRequested.of(run, source="test", time=TIME), 1) for run in (ONE, THREE)
    ]
    outcomes = carrier([answered, due])
    assert [type(each) for each in await anext(outcomes)] == [Handled]
    await outcomes.aclose()  # as when the broker is away
    ends = [type(each) async for batch in carrier([due]) for each in batch]
    assert ends[-1] is Handled
    assert Postponed not in ends


async def hold(store, **lasting):
    """Have another runner hold the lease of the first turn of ONE."""
    now, held = SystemClock().now(), TurnKey(ONE.run_id, 1)
    until = now + timedelta(**lasting)
    leases = await store.lease(ONE.experiment_id, [Claim(held)], "runner-2", now, until)
    assert leases.granted == {held}


async def test_a_turn_another_runner_is_asking_for_is_left_to_it_for_longer_and_longer(store):
    await hold(store, minutes=5)
    tutor = ScriptedTutor(lambda *_: reply())

    async def nothing(_):
        raise AssertionError("there is nothing to record or to release")

    clock, draining = SystemClock(), asyncio.Event()
    lease = partial(take_leases, store, "runner-1")
    margin = timedelta(seconds=5)
    calls = Calls(lease, nothing, nothing, Budgets(store, clock), clock, margin, draining)
    turn_taking = TurnTaking(calls, nothing, clock, partial(Retries, RetryPolicy()), draining)
    tutors = TutorPool(lambda _: tutor, Gates(most=10))
    carrier = RunCarrier(store, Experiments(store), tutors, turn_taking, clock, busy_delay=1)
    delays = []
    for attempt in range(1, 21):
        work = Work(RunRequested.of(ONE, source="test", time=TIME), attempt)
        (outcome,) = [outcome async for batch in carrier([work]) for outcome in batch]
        assert isinstance(outcome, Postponed)
        delays.append(outcome.after)
    # The deadline of the run, that of its last call, and the margin of its lease.
    assert delays == [1, 2, 4, 8, 16, 32, *[45] * 14]
    assert tutor.asked == []


class FourCalls:
    """Three calls to a model, one after the other, the third of which is slow; a fourth is prepared
    meanwhile.
    """

    def __init__(self, store, experiment):
        self.store, self.id = store, experiment.experiment_id
        self.clock, self.gates = SystemClock(), Gates(most=1)
        self.prepared, self.answer, self.draining = [asyncio.Event() for _ in range(3)]
        self.tutor = ScriptedTutor(self._script)
        give_back = partial(give_back_leases, store, "runner-1")
        budgets, margin = Budgets(store, self.clock), timedelta(seconds=60)
        calls = Calls(
            self._lease, give_back, self._lease, budgets, self.clock, margin, self.draining
        )
        model = TutorPool(lambda _: self.tutor, self.gates).tutor(experiment, MODEL.id)
        conversations = [Conversation(run, experiment.manifest) for run in experiment.runs()]
        self.fourth = conversations[3]
        self.made = [
            asyncio.create_task(calls.make(model, {each: each.question()}))
            for each in conversations
        ]

    async def _script(self, _, asked):
        if asked == 3:
            await self.answer.wait()
        return reply()

    async def _lease(self, leases):
        granted = await take_leases(self.store, "runner-1", leases)
        if len(self.tutor.asked) == 3:
            self.prepared.set()
        return granted

    async def committed(self):
        return (await self.store.spending(self.id, self.clock.now())).committed

    def drain(self):
        self.draining.set()
        self.gates.close()

    def cancel(self):
        self.made[3].cancel()

    async def end_of_the_fourth(self):
        try:
            [outcome] = (await self.made[3]).values()
        except asyncio.CancelledError:
            return "cancelled"
        return outcome.kind if isinstance(outcome, ModelCallFailed) else type(outcome)


@pytest.mark.parametrize(
    ("happens", "end"),
    [(FourCalls.drain, TurnPutOff), (FourCalls.cancel, "cancelled"), (None, "timeout")],
)
async def test_a_call_that_was_prepared_and_is_not_made_leaves_nothing_behind(store, happens, end):
    limits = Limits(timeout_seconds=30, run_timeout_seconds=30)
    manifest = Manifest(
        models=[MODEL.model_copy(update={"limits": limits})], scenarios=SCENARIOS[:1], repeats=4
    )
    experiment = await store.register(Experiment(manifest=manifest, created_at=TIME))
    calls = FourCalls(store, experiment)
    if not happens:  # the deadline of its run passes, which began with an earlier call
        calls.fourth.called_at = asyncio.get_running_loop().time() - 29
    await calls.prepared.wait()
    reserved = await calls.committed()
    if happens:
        happens(calls)
    assert await calls.end_of_the_fourth() == end
    calls.answer.set()
    assert [type(*(await each).values()) for each in calls.made[:3]] == [Reply] * 3
    assert (await store.calls(calls.id)).calls == len(calls.tutor.asked) == 3
    assert await calls.committed() * 4 == reserved * 3
    now, claim = calls.clock.now(), Claim(TurnKey(calls.fourth.run.run_id, 1))
    taken = await store.lease(calls.id, [claim], "runner-2", now, now + timedelta(minutes=1))
    assert taken.granted == {claim.turn}


async def test_a_run_a_dead_runner_holds_comes_through_once_its_lease_has_run_out(store):
    await hold(store, seconds=0.5)
    tutor = ScriptedTutor(lambda *_: reply())
    settings = SETTINGS.model_copy(update={"runner_busy_delay": 0.001})
    (event,) = await carry_out(store, tutor, ONE, settings=settings)
    assert event.data.text == reply().text
    assert len(tutor.asked) == 1


async def test_a_response_waits_for_a_store_that_is_away_and_is_not_asked_for_again(
    store, monkeypatch
):
    record, refused = store.record, []

    async def refuse_once(responses):
        if not refused:
            refused.append(responses)
            raise StoreUnavailable("restarting")
        return await record(responses)

    monkeypatch.setattr(store, "record", refuse_once)
    tutor = ScriptedTutor(lambda *_: reply())
    (event,) = await carry_out(store, tutor, ONE)
    assert event.data == refused[0][0]
    assert len(tutor.asked) == 1
    assert (await store.calls(EXPERIMENT.experiment_id)).calls == 1


async def test_what_a_model_client_logs_is_about_its_run(store):
    def script(*_):
        raise RuntimeError("a bug in the client")

    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await carry_out(store, ScriptedTutor(script), ONE)
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
    events = await carry_out(store, ScriptedTutor(lambda *_: slow()), *experiment.runs())
    assert len(events) == 8
    assert highest == 2


async def test_clients_are_closed_in_the_end(store):
    tutor = ScriptedTutor(lambda *_: reply())
    await carry_out(store, tutor, ONE)
    assert tutor.closed
