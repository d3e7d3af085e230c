"""The runner: a response is stored before anything else, and no model is asked twice for one."""

import asyncio
from datetime import timedelta

import pytest
import structlog

from socratic_bench.adapters.memory.broker import MemoryBroker
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.consuming.dispatch import to_message
from socratic_bench.consuming.outcomes import Retry, Work
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput, ModelCallFailed, StoreUnavailable
from socratic_bench.events.codec import decode
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.models import FailureKind, Reply
from socratic_bench.ports.store import TurnKey
from socratic_bench.scoring.statuses import Status
from socratic_runner.bootstrap import runner_worker
from socratic_runner.clients import TutorPool
from socratic_runner.conversation import Conversations
from socratic_runner.handlers import RunCarrier
from socratic_runner.settings import RunnerSettings
from tests.unit.events.examples import TIME

MODEL = TutorModel(
    id="scripted/tutor",
    price=Price(input_per_million=1, output_per_million=2),
    limits=Limits(timeout_seconds=0.2),
)
SCENARIOS = (
    Scenario(id="one", dimension="ambiguous", prompt="Help?"),
    Scenario(id="three", dimension="student", prompt="A?", follow_ups=("B?", "C?")),
)
EXPERIMENT = Experiment(
    manifest=Manifest(models=(MODEL,), scenarios=SCENARIOS, repeats=1), created_at=TIME
)
ONE, THREE = EXPERIMENT.runs()
SETTINGS = RunnerSettings(runner_attempts=3, runner_first_delay=0.001, runner_longest_delay=0.002)
DEADLINE = 10.0


class ScriptedTutor:
    """Answers as its script says, and remembers what it was asked."""

    concurrency = None
    answers_at_once = False

    def __init__(self, script) -> None:
        self.script = script
        self.asked = []
        self.closed = False

    async def ask(self, question):
        self.asked.append(question)
        answer = self.script(question, len(self.asked))
        if isinstance(answer, Exception):
            raise answer
        return await answer if asyncio.iscoroutine(answer) else answer

    async def close(self):
        self.closed = True


def reply(text="What might you try?", status=Status.OK) -> Reply:
    usage = Usage(visible_output_tokens=10, reasoning_tokens=5, input_tokens=100)
    return Reply(text=text, status=status, usage=usage, latency_ms=3, stop_reason="stop")


@pytest.fixture
async def store(tmp_path):
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await store.register(EXPERIMENT)
    yield store
    await store.close()


async def carry_out(store, tutor, *runs, owner="runner-1", settings=SETTINGS):
    """Request runs and return the events the runner publishes for them, in order."""
    if isinstance(tutor, ScriptedTutor):

        def open_client(_model):
            return tutor
    else:
        open_client = tutor
    broker = MemoryBroker()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    async with (
        asyncio.timeout(DEADLINE),
        runner_worker(broker, store, SystemClock(), open_client, settings, owner=owner) as worker,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(worker.run())
        await broker.publish(
            [to_message(RunRequested.of(run, source="test", time=TIME)) for run in runs]
        )
        events = []
        async with (
            broker.consume("judge-response-recorded", prefetch=99) as responses,
            broker.consume("curator-run-failed", prefetch=99) as failures,
        ):
            waiting = {
                tasks.create_task(responses.receive(99)): responses,
                tasks.create_task(failures.receive(99)): failures,
            }
            done = 0
            while done < len(runs):
                ready, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in ready:
                    consumer = waiting.pop(task)
                    deliveries = task.result()
                    await consumer.ack(deliveries)
                    for delivery in deliveries:
                        event = decode(delivery.message.body)
                        events.append(event)
                        done += isinstance(event, RunFailed) or event.data.last_turn
                    waiting[tasks.create_task(consumer.receive(99))] = consumer
            worker.drain()
            for task, consumer in waiting.items():
                consumer.drain()
                await task
    assert await broker.depth(RUNNER_RUN_REQUESTED.name) == 0
    assert await broker.dead_letters(RUNNER_RUN_REQUESTED.name) == []
    await broker.close()
    return events


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
        (ModelCallFailed("rate_limited", "429", retryable=True), "rate_limited", 3),
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


async def hold(store, **lasting):
    """Have another runner hold the lease of the first turn of ONE."""
    now, held = SystemClock().now(), {TurnKey(ONE.run_id, 1)}
    until = now + timedelta(**lasting)
    assert await store.lease(ONE.experiment_id, held, "runner-2", now, until) == held


async def test_a_turn_another_runner_is_asking_for_is_left_to_it_for_longer_and_longer(store):
    await hold(store, minutes=5)
    tutor = ScriptedTutor(lambda *_: reply())

    async def lease(wanteds):
        (wanted,) = wanteds
        granted = await store.lease(
            wanted.experiment_id, {wanted.key}, "runner-1", wanted.now, wanted.until
        )
        return [wanted.key in granted]

    async def record(responses):
        raise AssertionError("there is nothing to record")

    policy, margin = RetryPolicy(attempts=4, longest_delay=9.8), timedelta(seconds=5)
    conversations = Conversations(lease, record, SystemClock(), policy, margin, asyncio.Event())
    carrier = RunCarrier(
        store, TutorPool(lambda _: tutor), conversations, SystemClock(), busy_delay=1
    )
    delays = []
    for attempt in range(1, 21):
        work = Work(RunRequested.of(ONE, source="test", time=TIME), attempt)
        (outcome,) = [outcome async for batch in carrier([work]) for outcome in batch]
        assert isinstance(outcome, Retry)
        delays.append(outcome.after)
    # One turn of four calls with 0.2 s for each and 9.8 s between them, and the margin.
    assert delays == [1, 2, 4, 8, 16, 32, *[45] * 14]
    assert tutor.asked == []


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
