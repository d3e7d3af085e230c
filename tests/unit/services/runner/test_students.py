"""A model plays the student: each message is made once, stored, and then answered by the tutor."""

import asyncio
import json
from decimal import Decimal

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.outcomes import Handled, Postponed
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, Student, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.student import INSTRUCTION, student_run_id
from socratic_bench.errors import FailureKind, InvalidInput, ModelCallFailed
from socratic_bench.events.event_types import ResponseRecorded, RunFailed
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.scoring.exchange import Status
from socratic_runner.conversations.call_preparation import CallWindow
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    MODEL,
    ScriptedClient,
    carry_out,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)

PLAYER = TutorModel(
    id="scripted/student", price=Price(input_per_million=Decimal(1), output_per_million=Decimal(2))
)
SCENARIO = Scenario(
    id="parcel",
    dimension="student",
    persona="Boy, 13",
    prompt="What is the net force?",
    follow_ups=("FIXED 2", "FIXED 3"),
    pressures=("opening", "time", "closing"),
    key=("0 N",),
)
A_CALL = 100 * 1_000 + 15 * 2_000
"""Nanodollars, of either model."""


def played(budget=None, repeats=1, **student) -> Experiment:
    manifest = Manifest(
        models=(MODEL,),
        scenarios=(SCENARIO,),
        repeats=repeats,
        profile="fidelity-1",
        student=Student(**{"model": PLAYER, **student}),
        budget=budget,
    )
    return Experiment(manifest=manifest, created_at=TIME)


@pytest.fixture
async def store():
    return MemoryStore()


async def registered(store, **changes):
    experiment = played(**changes)
    await store.register(experiment)
    return experiment, *experiment.runs()


def clients(student=None, tutor=None):
    """A tutor, and a student whose messages count the calls."""
    says = student or (lambda question, number: reply(f"Please, turn {question.turn}, {number}"))
    return {
        MODEL.id: ScriptedClient(tutor or (lambda *_: reply())),
        PLAYER.id: ScriptedClient(says),
    }


def scene_of(question):
    return json.loads(question.student_message.partition("\n")[2])


async def test_the_tutor_answers_the_opening_and_then_what_the_model_says(store):
    _, run = await registered(store)
    models = clients()
    events = await carry_out(store, models, run)
    said = ["What is the net force?", "Please, turn 2, 1", "Please, turn 3, 2"]
    assert [each.data.student_message for each in events] == said
    last = models[MODEL.id].asked[-1]
    assert [*(each.student for each in last.earlier_turns), last.student_message] == said
    assert events[-1].data.answer_key == SCENARIO.key
    stored = (await store.responses([student_run_id(run.run_id)]))[student_run_id(run.run_id)]
    assert [(each.turn, each.text) for each in stored] == [(2, said[1]), (3, said[2])]


async def test_the_model_gets_the_person_the_conversation_and_the_kind_and_no_key(store):
    _, run = await registered(store)
    models = clients()
    await carry_out(store, models, run)
    first, second = models[PLAYER.id].asked
    assert (first.system_prompt, first.earlier_turns, first.turn) == (INSTRUCTION, (), 2)
    scene = scene_of(first)
    opening = {"person": SCENARIO.prompt, "tutor": "What might you try?"}
    assert (scene["person"], scene["kind"], scene["conversation"]) == ("Boy, 13", "time", [opening])
    assert scene_of(second)["conversation"][1]["person"] == "Please, turn 2, 1"
    assert not any("0 N" in text for each in (first, second) for text in each.texts)
    assert not any("FIXED" in text for each in (first, second) for text in each.texts)


async def test_the_seed_of_a_message_follows_from_student_scenario_repeat_and_turn_alone(store):
    def seeds(experiment, models):
        return [each.seed for each in models[PLAYER.id].asked]

    found = []
    for changes in ({}, {"repeats": 2}, {"seed": 1}):
        experiment, run, *_ = await registered(store, **changes)
        models = clients()
        await carry_out(store, models, run)
        found.append(seeds(experiment, models))
    assert found[0] == found[1], "the same repeat of another experiment"
    assert not set(found[0]) & set(found[2])


async def test_a_redelivered_run_neither_pays_for_a_message_again_nor_gets_another_one(store):
    experiment, run = await registered(store)
    broken = ModelCallFailed(FailureKind.BAD_REQUEST, "no", retryable=False)
    models = clients(tutor=lambda question, _: broken if question.turn == 3 else reply())
    await carry_out(store, models, run)
    assert len(models[PLAYER.id].asked) == 2
    again = clients(student=lambda *_: reply("Another one"))
    events = await carry_out(store, again, run, retry=1, owner="runner-2")
    assert again[PLAYER.id].asked == []
    assert events[-1].data.student_message == "Please, turn 3, 2"
    assert (await store.spending(experiment.experiment_id)).committed == 5 * A_CALL


async def test_of_two_messages_the_tutor_answers_the_first_stored_one(store):
    _, run = await registered(store)
    spoke, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(question):
        spoke.set()
        await go_on.wait()
        return reply(f"A late one, turn {question.turn}")

    late = clients(student=lambda question, _: slowly(question))
    async with asyncio.TaskGroup() as tasks:
        carried = tasks.create_task(carry_out(store, late, run))
        await spoke.wait()
        # The lease of a frozen runner ends, and another runner stores its own message.
        [answer] = (await store.responses([run.run_id]))[run.run_id]
        student = run.model_copy(update={"run_id": student_run_id(run.run_id)})
        first = answer.model_copy(update={"run": student, "turn": 2, "text": "The first one"})
        await store.record([first], [None])
        go_on.set()
    said = [each.data.student_message for each in carried.result()]
    assert said[1:] == ["The first one", "A late one, turn 3"]
    assert late[MODEL.id].asked[1].student_message == "The first one"


async def test_a_message_in_another_runners_hand_postpones_the_run(store, monkeypatch):
    monkeypatch.setattr("socratic_runner.conversations.conversation_runner.HELD_LOOKS", 0)
    _, run = await registered(store)
    lease = Lease(LeaseKey(run.experiment_id, student_run_id(run.run_id), 2, "other"), 60.0)
    await store.take_leases([lease], "runner-2")
    async with parts_of_a_runner(store, ScriptedClient(lambda *_: reply())) as parts:
        work = requested(run)
        assert isinstance((await outcomes_of(parts.handler, work))[work], Postponed)


async def test_a_function_that_ends_after_a_message_leaves_its_answer_to_the_next_one(store):
    _, run = await registered(store)
    models = clients()
    window = CallWindow(left=lambda: 1.0 if models[PLAYER.id].asked else 999.0)

    def says(question, number):
        role = PLAYER.id if question.system_prompt == INSTRUCTION else MODEL.id
        models[role].asked.append(question)
        return models[role].script(question, number)

    async with parts_of_a_runner(store, ScriptedClient(says), window=window) as parts:
        work = requested(run)
        assert isinstance((await outcomes_of(parts.handler, work))[work], Postponed)
    assert (len(models[MODEL.id].asked), len(models[PLAYER.id].asked)) == (1, 1)
    next_one = clients(student=lambda *_: reply("Now?"))
    events = await carry_out(store, next_one, run)
    assert [each.data.student_message for each in events][1:] == ["Please, turn 2, 2", "Now?"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (reply("Is it 0 N?"), "says the scenario's key"),
        (reply(""), "is empty"),
        (reply("<think>Which?</think> "), "is empty"),
        (reply("Please te", Status.TRUNCATED), "ended as truncated"),
        (reply("I cannot.", Status.REFUSED), "ended as refused"),
    ],
    ids=["key", "empty", "thoughts alone", "cut off", "refused"],
)
async def test_a_message_of_no_use_is_asked_for_again_and_in_the_end_the_run_fails(
    store, said, why
):
    _, run = await registered(store)
    models = clients(student=lambda *_: said)
    events = await carry_out(store, models, run)
    recorded, failed = events
    assert (type(recorded), recorded.data.turn) == (ResponseRecorded, 1)
    assert (type(failed), failed.data.turn, failed.data.kind) == (RunFailed, 2, "malformed_reply")
    assert failed.data.message.startswith("scripted/student plays the student, and failed: ")
    assert why in failed.data.message
    asked = models[PLAYER.id].asked
    assert (len(asked), failed.data.attempts) == (3, 3), "as often as the runner tries"
    assert len({each.seed for each in asked}) == 3, "a model with a seed would say the same again"
    assert len(models[MODEL.id].asked) == 1
    assert await store.responses([student_run_id(run.run_id)]) == {}
    events = await carry_out(store, clients(), run, retry=1)
    assert events[-1].data.last_turn, "a retry goes on from there"


async def test_thoughts_are_no_part_of_a_message(store):
    _, run = await registered(store)
    models = clients(student=lambda *_: reply("<think>Never say 0 N.</think>\n\nWhat is it? \n"))
    events = await carry_out(store, models, run)
    assert {each.data.student_message for each in events[1:]} == {"What is it?"}


async def test_a_failed_call_keeps_its_class_and_a_passing_one_its_seed(store):
    _, run = await registered(store)
    busy = ModelCallFailed(FailureKind.OVERLOADED, "busy", retryable=True)
    models = clients(student=lambda _, number: busy if number == 1 else reply("Now?"))
    events = await carry_out(store, models, run)
    assert events[-1].data.last_turn
    first, second, _ = models[PLAYER.id].asked
    assert first.seed == second.seed


async def test_a_student_that_cannot_be_called_fails_the_run_before_a_call_of_the_tutor(store):
    _, run = await registered(store)
    models = clients()

    def open_client(model):
        if model.id == PLAYER.id:
            raise InvalidInput("there is no key")
        return models[model.id]

    [failed] = await carry_out(store, open_client, run)
    assert (failed.data.turn, failed.data.attempts) == (1, 0)
    assert models[MODEL.id].asked == []


async def test_tutor_and_student_share_the_budget_and_a_stopped_run_goes_on_from_its_message(store):
    dear = PLAYER.model_copy(
        update={"price": Price(input_per_million=Decimal(1), output_per_million=Decimal(100))}
    )
    experiment, run = await registered(store, model=dear, budget=Decimal(2_500_000).scaleb(-9))
    async with parts_of_a_runner(store, ScriptedClient(lambda *_: reply())) as parts:
        work = requested(run)
        outcome = (await outcomes_of(parts.handler, work))[work]
    assert isinstance(outcome, Handled)
    spending = await store.spending(experiment.experiment_id)
    assert (spending.committed, spending.exhausted) == (A_CALL, True)
    assert len((await store.responses([run.run_id]))[run.run_id]) == 1


async def test_models_that_answer_at_once_get_the_models_messages_too(store):
    _, *runs = await registered(store, repeats=3)
    models = clients()
    for each in models.values():
        each.answers_at_once = True
    events = await carry_out(store, models, *runs)
    later = [each.data.student_message for each in events if each.data.turn > 1]
    assert len(later) == len(set(later)) == 6
    assert all(each.startswith("Please, turn") for each in later)


async def test_the_student_may_be_a_model_under_test(store):
    _, run = await registered(store, model=MODEL)

    def says(question, _):
        return reply("Now?" if question.system_prompt == INSTRUCTION else "Why?")

    events = await carry_out(store, ScriptedClient(says), run)
    assert [(each.data.student_message, each.data.text) for each in events[1:]] == [
        ("Now?", "Why?"),
        ("Now?", "Why?"),
    ]
