"""The runner grades responses before it publishes them, each text once, as it makes any call."""

import asyncio
from decimal import Decimal

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.outcomes import Handled, Postponed
from socratic_bench.domain.experiment.manifest import Experiment, Grader, Manifest, TutorModel
from socratic_bench.domain.grading import INSTRUCTION, Grading, grading_run_id, message_of
from socratic_bench.domain.money import Price
from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable
from socratic_bench.events.event_types import ResponseRecorded, RunFailed
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.scoring.exchange import Status
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    MODEL,
    SCENARIOS,
    ScriptedClient,
    carry_out,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)

GRADER = TutorModel(
    id="scripted/grader", price=Price(input_per_million=Decimal(1), output_per_million=Decimal(2))
)


def graded(repeats=1, budget=None, grader=GRADER, models=(MODEL,)) -> Experiment:
    manifest = Manifest(
        models=models,
        scenarios=SCENARIOS,
        repeats=repeats,
        profile="socratic-v1-llm",
        use_llm_exploratory=Grader(model=grader),
        budget=budget,
    )
    return Experiment(manifest=manifest, created_at=TIME)


@pytest.fixture
async def store():
    return MemoryStore()


def asking(text="What might you try?"):
    return ScriptedClient(lambda question, _: reply(f"{text} {question.student_message}"))


def clients(grade="7", tutor=None):
    """A tutor whose answers differ, and a grader with one reply."""
    script = grade if callable(grade) else lambda *_: reply(grade)
    return {MODEL.id: tutor or asking(), GRADER.id: ScriptedClient(script)}


def gradings_of(events):
    return [event.data.grading for event in events]


async def test_each_response_is_published_with_its_grading_and_stored_without(store):
    experiment, models = graded(), clients()
    await store.register(experiment)
    runs = list(experiment.runs())
    events = await carry_out(store, models, *runs)
    assert gradings_of(events) == [Grading(score=0.7)] * 4
    stored = await store.responses([run.run_id for run in runs])
    assert {each.grading for responses in stored.values() for each in responses} == {None}


async def test_the_grader_gets_the_rubric_and_the_quoted_text_at_temperature_0(store):
    experiment, models = graded(), clients()
    await store.register(experiment)
    [one, _] = experiment.runs()
    await carry_out(store, models, one)
    [question] = models[GRADER.id].asked
    assert (question.system_prompt, question.student_message) == (
        INSTRUCTION,
        message_of("What might you try? Help?"),
    )
    assert (question.parameters.temperature, question.earlier_turns) == (0, ())


async def test_a_text_is_graded_once_however_often_it_is_said_at_once(store):
    experiment = graded(repeats=5)
    await store.register(experiment)
    began, go_on = asyncio.Event(), asyncio.Event()

    async def later():
        began.set()
        await go_on.wait()
        return reply("7")

    same = ScriptedClient(lambda *_: reply("Why?"))
    models = clients(lambda *_: later(), same)
    runs = [run for run in experiment.runs() if run.scenario_id == "one"]
    async with asyncio.TaskGroup() as tasks:
        carried = tasks.create_task(carry_out(store, models, *runs))
        await began.wait()
        go_on.set()
    assert gradings_of(carried.result()) == [Grading(score=0.7)] * 5
    assert (len(same.asked), len(models[GRADER.id].asked)) == (5, 1)


async def test_what_is_stored_is_published_again_with_its_grading_and_without_a_call(store):
    experiment, models = graded(), clients()
    await store.register(experiment)
    runs = list(experiment.runs())
    first = await carry_out(store, models, *runs)
    calls = (await store.calls(experiment.experiment_id)).calls

    def nobody(_model):
        raise AssertionError("no client is needed for what is stored")

    assert await carry_out(store, nobody, *runs) == first
    assert (await store.calls(experiment.experiment_id)).calls == calls == 8


async def test_another_experiment_adopts_the_gradings_of_the_same_grader_alone(store):
    first, second = graded(repeats=1), graded(repeats=2)
    hostile = graded(grader=GRADER.model_copy(update={"base_url": "http://127.0.0.1:9/v1"}))
    for each in (first, second, hostile):
        await store.register(each)
    models = clients()
    await carry_out(store, models, *first.runs())
    again = clients("3")
    events = await carry_out(store, again, *second.runs())
    assert gradings_of(events) == [Grading(score=0.7)] * 8
    assert again[GRADER.id].asked == []
    spent = (await store.spending(second.experiment_id)).committed
    assert spent == 8 * (100 * 1_000 + 15 * 2_000), "the tutor's calls alone"
    events = await carry_out(store, again, *hostile.runs())
    assert gradings_of(events) == [Grading(score=0.3)] * 4


@pytest.mark.parametrize(
    "said",
    [
        reply("Ignore the rubric: 10"),
        reply("1", Status.TRUNCATED),
        reply("7", Status.REFUSED),
        reply(""),
    ],
    ids=["sentence", "cut off", "refused", "empty"],
)
async def test_a_reply_without_a_grade_is_asked_for_again_and_in_the_end_no_grade(store, said):
    experiment = graded()
    await store.register(experiment)
    [one, _] = experiment.runs()
    models = clients(lambda *_: said)
    [event] = await carry_out(store, models, one)
    assert event.data.grading == Grading(score=None, failure="malformed_reply")
    assert len(models[GRADER.id].asked) == 3, "as often as the runner tries"
    assert await store.responses([grading_run_id(one.experiment_id, event.data.text)]) == {}

    def mends_itself(_question, number):
        return said if number == 1 else reply("0")

    [_, three] = experiment.runs()
    events = await carry_out(store, clients(mends_itself), three)
    assert gradings_of(events) == [Grading(score=0.0)] * 3


async def test_a_grader_that_cannot_be_used_leaves_no_grade_and_the_run_is_not_failed(store):
    experiment = graded()
    await store.register(experiment)

    def refuses(*_):
        return ModelUnusable(FailureKind.AUTH, "wrong key")

    events = await carry_out(store, clients(refuses), *experiment.runs())
    assert gradings_of(events) == [Grading(score=None, failure="auth")] * 4


async def test_a_response_without_a_score_is_not_graded(store):
    experiment = graded()
    await store.register(experiment)
    refusing = ScriptedClient(lambda *_: reply("No.", Status.REFUSED))
    models = clients(tutor=refusing)
    [one, _] = experiment.runs()
    [event] = await carry_out(store, models, one)
    assert (event.data.grading, models[GRADER.id].asked) == (None, [])


async def test_the_turns_before_a_failure_are_graded_and_the_failure_is_published(store):
    experiment = graded()
    await store.register(experiment)

    def fails_at_turn_2(question, _):
        if question.turn == 2:
            return ModelCallFailed(FailureKind.BAD_REQUEST, "no", retryable=False)
        return reply("Why?")

    [_, three] = experiment.runs()
    models = clients(tutor=ScriptedClient(fails_at_turn_2))
    for _ in range(2):
        events = {type(each): each.data for each in await carry_out(store, models, three)}
        assert events[ResponseRecorded].grading == Grading(score=0.7)
        assert events[RunFailed].turn == 2
    assert len(models[GRADER.id].asked) == 1


async def test_the_tutor_and_the_grader_share_the_budget_and_nothing_ungraded_is_published(store):
    tutor_cost = 100 * 1_000 + 15 * 2_000
    dear = Price(input_per_million=Decimal(1), output_per_million=Decimal(100))
    grader = GRADER.model_copy(update={"price": dear})
    experiment = graded(budget=Decimal(2_500_000).scaleb(-9), grader=grader)
    await store.register(experiment)
    id_ = experiment.experiment_id
    [one, _] = experiment.runs()
    async with parts_of_a_runner(store, ScriptedClient(lambda *_: reply("7"))) as parts:
        work = requested(one)
        outcome = (await outcomes_of(parts.handler, work))[work]
    assert outcome == Handled(work)
    spending = await store.spending(id_)
    assert (spending.committed, spending.exhausted) == (tutor_cost, True)
    assert len((await store.responses([one.run_id]))[one.run_id]) == 1


async def test_a_grading_in_another_runners_hand_is_not_paid_again(store, monkeypatch):
    monkeypatch.setattr("socratic_runner.conversations.conversation_runner.HELD_LOOKS", 0)
    experiment = graded()
    await store.register(experiment)
    id_ = experiment.experiment_id
    [one, _] = experiment.runs()
    run_id = grading_run_id(id_, "What might you try? Help?")
    await store.take_leases([Lease(LeaseKey(id_, run_id, 1, "other"), 60.0)], "runner-2")
    async with parts_of_a_runner(store, asking()) as parts:
        work = requested(one)
        outcome = (await outcomes_of(parts.handler, work))[work]
    assert isinstance(outcome, Postponed)
    assert len((await store.responses([one.run_id]))[one.run_id]) == 1


async def test_models_that_answer_at_once_are_graded_too(store):
    experiment = graded(repeats=2)
    await store.register(experiment)
    models = clients()
    models[MODEL.id].answers_at_once = True
    events = await carry_out(store, models, *experiment.runs())
    assert gradings_of(events) == [Grading(score=0.7)] * 8
    assert len(models[GRADER.id].asked) == 4


async def test_the_grader_may_be_a_model_under_test(store):
    experiment = graded(grader=MODEL)
    await store.register(experiment)

    def answers(question, _) -> Reply:
        return reply("7" if question.system_prompt == INSTRUCTION else "Why?")

    events = await carry_out(store, ScriptedClient(answers), *experiment.runs())
    assert gradings_of(events) == [Grading(score=0.7)] * 4
