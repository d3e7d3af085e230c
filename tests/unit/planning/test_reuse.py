"""A new experiment takes over equal answers of an earlier one, and no others."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Limits,
    Manifest,
    OwnParameters,
    Parameters,
    TutorModel,
)
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.plan import as_due
from socratic_bench.planning.reuse import MAX_AGE, Reuse, look_ahead
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import (
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
    that_wavers,
    wavering,
)

EARLIER = an_experiment(repeats=2, follow_ups=["And then?"])
LATER = MONDAY + timedelta(days=1)


@pytest.fixture
async def store():
    store = MemoryStore()
    yield store
    await store.close()


def conversation(run, **changes):
    """Both turns of a run of EARLIER."""
    return [
        a_response(run, "Why?", last_turn=False).model_copy(update=changes),
        a_response(run, "How?", turn=2).model_copy(update=changes),
    ]


async def answered(store, experiment, runs=None, **changes):
    await store.register(experiment)
    for run in experiment.runs() if runs is None else runs:
        await record_unleased(store, conversation(run, **changes))


async def adopt(store, experiment, *, now=LATER, retry_failed=False):
    reuse = Reuse(experiment, store, now)
    outlook = await look_ahead(
        experiment, store, reuse=reuse, adopt=True, retry_failed=retry_failed
    )
    await store.register(experiment)
    return outlook


async def test_one_more_repeat_asks_only_for_that_one(store):
    await answered(store, EARLIER)
    more = an_experiment(repeats=3, follow_ups=["And then?"])
    outlook = await adopt(store, more)
    assert (outlook.planned, outlook.reused, outlook.new) == (18, 12, 6)
    assert set(outlook.left.values()) == {1}
    assert outlook.reused_nanodollars == 12 * 2 * 21_000
    stored = await store.responses([run.run_id for run in more.runs()])
    assert len(stored) == 12
    sources = {(run.model_id, run.scenario_id, run.repeat): run for run in EARLIER.runs()}
    for responses in stored.values():
        source = sources[key_of(responses[0].run)]
        assert [each.adopted_from for each in responses] == [source.run_id] * 2
        assert [each.text for each in responses] == ["Why?", "How?"]
        assert {each.cost_nanodollars for each in responses} == {21_000}
        assert {each.recorded_at for each in responses} == {MONDAY}


async def test_an_adopted_answer_has_the_key_of_the_scenario_that_adopts_it(store):
    await answered(store, EARLIER, answer_key=("seven",))
    scenarios = [
        each.model_copy(update={"key": ("7",) if each.id == "scenario-0" else ()})
        for each in EARLIER.manifest.scenarios
    ]
    fields = EARLIER.manifest.model_dump() | {"scenarios": scenarios}
    manifest = Manifest.model_validate(fields)
    keyed = Experiment(manifest=manifest, created_at=MONDAY)
    assert (await adopt(store, keyed)).reused == 12
    stored = await store.responses([run.run_id for run in keyed.runs()])
    keys = {
        (each.run.scenario_id, each.answer_key) for of_run in stored.values() for each in of_run
    }
    assert keys == {("scenario-0", ("7",)), ("scenario-1", ()), ("scenario-2", ())}


async def test_another_model_asks_only_itself(store):
    await answered(store, an_experiment(models=2, follow_ups=["And then?"]))
    outlook = await adopt(store, an_experiment(models=3, follow_ups=["And then?"]))
    assert {model for model, _ in outlook.left} == {"reference/tutor-2"}
    assert outlook.reused == 12


async def test_every_stored_status_is_an_answer_and_a_failure_is_none(store):
    ok, refused, cut_off, failed, halfway, broken, *_ = EARLIER.runs()
    await answered(store, EARLIER, [ok])
    await answered(store, EARLIER, [refused], status=Status.REFUSED)
    await answered(store, EARLIER, [cut_off], status=Status.TRUNCATED)
    await answered(store, EARLIER, [broken], status=Status.ERROR)
    await store.record_failures([RecordedFailure(a_failure(failed), 0)])
    await record_unleased(store, conversation(halfway)[:1])
    later = an_experiment(repeats=1, follow_ups=["And then?"])
    outlook = await adopt(store, later)
    assert outlook.reused == 3
    stored = await store.responses([run.run_id for run in later.runs()])
    statuses = Counter(responses[-1].status for responses in stored.values())
    assert statuses == {Status.OK: 1, Status.REFUSED: 1, Status.TRUNCATED: 1}


async def test_what_is_older_than_thirty_days_is_asked_anew(store):
    await answered(store, EARLIER)
    later = an_experiment(repeats=1, follow_ups=["And then?"])
    too_late = MONDAY + MAX_AGE + timedelta(seconds=1)
    assert (await adopt(store, later, now=too_late)).reused == 0
    assert (await adopt(store, later, now=MONDAY + MAX_AGE)).reused == 6


async def test_a_copy_of_a_copy_names_its_first_run_and_keeps_its_age(store):
    await answered(store, EARLIER)
    second = an_experiment(repeats=3, follow_ups=["And then?"])
    await adopt(store, second)
    third = an_experiment(repeats=1, models=3, follow_ups=["And then?"])
    assert (await adopt(store, third)).reused == 6
    stored = await store.responses([run.run_id for run in third.runs()])
    first = {run.run_id for run in EARLIER.runs()}
    assert {each.adopted_from for responses in stored.values() for each in responses} <= first


async def test_what_is_stored_already_is_neither_copied_nor_counted_as_new(store):
    await answered(store, EARLIER)
    later = an_experiment(repeats=3, follow_ups=["And then?"])
    first = await adopt(store, later)
    again = await adopt(store, later)
    assert (first.reused, first.answered) == (12, 0)
    assert (again.reused, again.answered, again.new) == (0, 12, 6)
    done, *_ = later.runs()
    await store.fold([a_score(done, last_turn=False), a_score(done, turn=2)], [])
    assert (await adopt(store, later)).done == 1


async def test_a_failed_run_is_asked_again_only_where_that_is_wanted(store):
    failed, *_ = EARLIER.runs()
    await store.register(EARLIER)
    await store.fold([], [a_failure(failed)])
    assert (await adopt(store, EARLIER)).done == 1
    assert (await adopt(store, EARLIER, retry_failed=True)).done == 0


async def test_looking_alone_stores_nothing(store):
    await answered(store, EARLIER)
    later = an_experiment(repeats=3, follow_ups=["And then?"])
    reuse = Reuse(later, store, LATER)
    assert (await look_ahead(later, store, reuse=reuse, adopt=False)).reused == 12
    assert await store.responses([run.run_id for run in later.runs()]) == {}
    assert await store.experiment(later.experiment_id) is None


async def test_without_reuse_everything_is_asked(store):
    await answered(store, EARLIER)
    later = an_experiment(repeats=3, follow_ups=["And then?"])
    outlook = await look_ahead(later, store, reuse=None, adopt=True)
    assert (outlook.reused, outlook.new) == (0, 18)


MODEL = TutorModel(id="vllm/tutor", base_url="https://tutor.example/v1", options={"a": 1})
SCENARIO = Scenario(id="one", dimension="student", prompt="Why?")
ASKED = Manifest(models=(MODEL,), scenarios=(SCENARIO,))


def the_key(manifest=ASKED, occasion=None):
    experiment = Experiment(manifest=manifest, occasion=occasion, created_at=MONDAY)
    return experiment.conversation_keys[manifest.models[0].id, manifest.scenarios[0].id]


def changed(**changes):
    return Manifest(**{"models": (MODEL,), "scenarios": (SCENARIO,), **changes})


def changed_model(**changes):
    return changed(models=(MODEL.model_copy(update=changes),))


@pytest.mark.parametrize(
    "manifest",
    [
        changed_model(base_url="https://hostile.example/v1"),
        changed_model(base_url=None),
        changed_model(options={"a": 2}),
        changed_model(id="vllm/other"),
        changed(system_prompt="Lecture."),
        changed_model(system_prompt="Lecture."),
        changed_model(parameters=OwnParameters(max_tokens=4000)),
        changed(parameters=Parameters(temperature=0.1)),
        changed(scenarios=(SCENARIO.model_copy(update={"prompt": "How?"}),)),
        changed(scenarios=(SCENARIO.model_copy(update={"follow_ups": ("And?",)}),)),
    ],
)
def test_whatever_changes_what_is_asked_changes_the_key(manifest):
    assert the_key(manifest) != the_key()
    assert the_key(occasion="2026-W10") != the_key()


@pytest.mark.parametrize(
    "manifest",
    [
        changed(repeats=99),
        changed(budget=5, deadline_hours=3.0, profile="other-v1"),
        changed(name="A pilot", notes="For fun."),
        changed_model(system_prompt=ASKED.system_prompt),
        changed_model(parameters=OwnParameters(max_tokens=ASKED.parameters.max_tokens)),
        changed_model(name="Another name", limits=Limits(concurrency=3)),
        changed_model(price=Price(input_per_million=Decimal(1), output_per_million=Decimal(2))),
        changed(models=(MODEL, TutorModel(id="vllm/more"))),
        changed(scenarios=(SCENARIO, SCENARIO.model_copy(update={"id": "two"}))),
        changed(scenarios=(SCENARIO.model_copy(update={"title": "A better title"}),)),
        changed(scenarios=(SCENARIO.model_copy(update={"pressures": ("ask",), "key": ("7",)}),)),
    ],
)
def test_whatever_does_not_change_what_is_asked_keeps_the_key(manifest):
    assert the_key(manifest) == the_key()


def test_how_often_models_are_asked_is_no_condition_of_the_figures():
    assert changed(repeats=99).conditions_id == ASKED.conditions_id
    assert changed(repeats=99).manifest_id != ASKED.manifest_id


@given(
    st.lists(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 3), (3, 2)]), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
async def test_in_any_history_nothing_is_asked_twice(history, chance):
    """Experiments of some models and repeats, each carried out in part, one after another."""
    store = MemoryStore()
    asked = set()
    for models, repeats in history:
        experiment = an_experiment(models=models, repeats=repeats, follow_ups=["And then?"])
        outlook = await adopt(store, experiment)
        runs = list(experiment.runs())
        stored = await store.responses([run.run_id for run in runs])
        left = [run for run in runs if run.run_id not in stored]
        assert outlook.new == len(left)
        for run in left:
            if chance.random() < 0.7:
                assert key_of(run) not in asked
                asked.add(key_of(run))
                await record_unleased(store, conversation(run))
    await store.close()


def key_of(run):
    return run.model_id, run.scenario_id, run.repeat


async def test_repeats_that_an_interval_may_stop_take_answers_over_once_they_are_due(store):
    """Others would wait for a score, and hold up the end."""
    earlier = an_experiment(repeats=5, scenarios=5)
    await store.register(earlier)
    await record_unleased(store, [a_response(run) for run in earlier.runs()])
    later = that_wavers()
    assert later.experiment_id != earlier.experiment_id
    outlook = await adopt(store, later)
    assert (outlook.reused, outlook.new) == (50, 0)
    unscored = await store.unscored_responses(later.experiment_id, 99)
    assert {each.run.repeat for each in unscored} == {1, 2}
    await store.fold([wavering(run) for run in later.up_to(2).runs()], [])
    assert (await as_due(later, store, LATER)).manifest.due_repeats == 3
    unscored = await store.unscored_responses(later.experiment_id, 99)
    assert {each.run.repeat for each in unscored} == {3}
