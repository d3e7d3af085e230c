"""The curator: folds once, announces again, and notices the end."""

from typing import Any

import pytest

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.outcomes import Handled, Rejected, Work
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidEvent
from socratic_bench.events.codec import decode, encode
from socratic_bench.events.event_types import (
    AggregateUpdated,
    ExperimentCompleted,
    ResponseScored,
    RunFailed,
)
from socratic_bench.results.experiment_status import stop_told
from socratic_bench.scoring.exchange import Status
from socratic_curator.handlers import FactHandler
from tests.contract.store.facts import a_response, record_unleased, that_wavers, wavering
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT

FIRST, SECOND = EXPERIMENT.runs()


def scored(run) -> ResponseScored:
    fact = ScoredResponse(
        run=run,
        turn=1,
        last_turn=True,
        profile="socratic-v1",
        status=Status.OK,
        vectors={"verbosity": 0.5, "exploratory": 0.5, "interrogative": 0.5},
        overall=0.5,
    )
    return ResponseScored.of(fact, source="test", time=TIME)


def failed(run) -> RunFailed:
    fact = RunFailure(
        run=run, turn=1, profile="socratic-v1", kind="timeout", message="late", attempts=4
    )
    return RunFailed.of(fact, source="test", time=TIME)


async def published(store, *events):
    works = [Work(event, 1) for event in events]
    outcomes = [
        outcome async for batch in FactHandler(store, SystemClock())(works) for outcome in batch
    ]
    assert [outcome.work for outcome in outcomes] == works
    assert all(isinstance(outcome, Handled) for outcome in outcomes)
    return [event for outcome in outcomes for event in outcome.publish]


async def test_a_batch_is_announced_with_the_progress_it_led_to(store):
    (announced,) = await published(store, scored(FIRST))
    assert isinstance(announced, AggregateUpdated)
    assert (announced.data.done, announced.data.planned, announced.data.failed) == (1, 2, 0)
    assert announced.data.models == ("reference/socratic",)


async def test_the_end_is_announced_when_every_run_is_scored_or_failed(store):
    await published(store, scored(FIRST))
    updated, completed = await published(store, failed(SECOND))
    assert isinstance(updated, AggregateUpdated)
    assert isinstance(completed, ExperimentCompleted)
    assert (completed.data.planned, completed.data.failed) == (2, 1)
    stored = await store.experiment(EXPERIMENT.experiment_id)
    assert stored.completed_at is not None


async def test_a_redelivered_fact_changes_nothing_and_is_announced_again(store):
    first = await published(store, scored(FIRST), scored(SECOND))
    before = [cell.to_json() for cell in await store.cells()]
    completed_at = (await store.experiment(EXPERIMENT.experiment_id)).completed_at
    again = await published(store, scored(SECOND), scored(SECOND), scored(FIRST))
    assert [cell.to_json() for cell in await store.cells()] == before
    assert [event.id for event in again] == [event.id for event in first]
    assert (await store.experiment(EXPERIMENT.experiment_id)).completed_at == completed_at


async def test_repeats_go_on_until_intervals_are_narrow_and_each_is_requested_once(store):
    """Two curators see the end of a repeat, and their requests are the same ones."""
    experiment = await store.register(that_wavers(models=1))
    runs = list(experiment.up_to(2).runs())
    early, *facts = [ResponseScored.of(wavering(run), source="test", time=TIME) for run in runs]
    announced = await published(store, early, *facts)
    (updated, *requests) = announced
    assert isinstance(updated, AggregateUpdated)
    third = {run.run_id for run in experiment.up_to(3).runs(3)}
    assert {each.subject for each in requests} == third
    again = await published(store, facts[-1])
    assert {each.id for each in again[1:]} == {each.id for each in requests}

    begun, *others = list(experiment.up_to(3).runs(3))
    await record_unleased(store, [a_response(begun)])
    # Its answer is on the way: what the cells hold now is no look between two repeats.
    assert len(await published(store, facts[-1])) == 1
    facts = [ResponseScored.of(wavering(run), source="test", time=TIME) for run in others]
    assert len(await published(store, *facts)) == 1
    final = ResponseScored.of(wavering(begun), source="test", time=TIME)
    for _ in range(2):
        _, completed = await published(store, final)
        assert isinstance(completed, ExperimentCompleted)
        assert completed.data.planned == 15
    stored = await store.experiment(experiment.experiment_id)
    assert (stored.manifest.stopped_after, stored.manifest.planned_runs) == (3, 15)
    told = await stop_told(store, stored, 15)
    assert told is not None
    assert told.endswith("after 3 of 5 repeats")


async def test_a_stopped_experiment_buys_no_further_repeat(store):
    experiment = await store.register(that_wavers(models=1))
    *runs, last = experiment.up_to(2).runs()
    await store.fold([wavering(run) for run in runs], [])
    await store.change_state(experiment.experiment_id, ExperimentState.PAUSED)
    fact = ResponseScored.of(wavering(last), source="test", time=TIME)
    assert len(await published(store, fact)) == 1


async def test_scores_by_another_profile_do_not_announce_the_end_again(store):
    await published(store, scored(FIRST), scored(SECOND))
    fact = scored(FIRST).data.model_copy(update={"profile": "socratic-v1-same-ruler"})
    rescored = ResponseScored.of(fact, source="test", time=TIME)
    (announced,) = await published(store, rescored)
    assert isinstance(announced, AggregateUpdated)
    assert (announced.data.done, announced.data.planned) == (2, 2)


def changed(event: Any, run: dict[str, Any], **data: Any) -> Any:
    """The same fact with other fields of its run, or of its data."""
    fact = event.data.model_copy(update={"run": event.data.run.model_copy(update=run), **data})
    return event.model_copy(update={"data": fact})


FALL = {"vectors": {"verbosity": 0.0, "exploratory": 0.0, "interrogative": 0.0}, "overall": 0.0}

FORGED: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "a repeat": (scored(FIRST), {"repeat": 100_000}, FALL, "repeat 100000 of 2"),
    "a turn": (scored(FIRST), {}, {"turn": 1_000_000_000, **FALL}, "turn 1000000000 of 1"),
    "a scenario": (scored(FIRST), {"scenario_id": "none"}, FALL, "scenario 'none' for model"),
    "a model": (scored(FIRST), {"model_id": "openai/x"}, FALL, "for model 'openai/x'"),
    "an id": (scored(FIRST), {"run_id": "run-none"}, FALL, "the id 'run-none'"),
    "an id with a blank": (scored(FIRST), {"run_id": FIRST.run_id + " "}, FALL, "the id"),
    "a dimension": (scored(FIRST), {"dimension": "other"}, FALL, "dimension 'other'"),
    "an experiment": (scored(FIRST), {"experiment_id": "exp-none"}, FALL, "'exp-none'"),
    "a profile": (scored(FIRST), {}, {"profile": "no-such"}, "the profile 'no-such'"),
    "a profile's case": (scored(FIRST), {}, {"profile": "Socratic-v1"}, "'Socratic-v1'"),
    "an end": (scored(FIRST), {}, {"last_turn": False}, "turn 1 of 1 as followed by another"),
    "an overall": (scored(FIRST), {}, {"overall": 1.0}, "overall is 1.0, its vectors give 0.5"),
    "no overall": (scored(FIRST), {}, {"overall": None}, "its vectors give 0.5"),
    "no vectors": (scored(FIRST), {}, {"vectors": None}, "a score has no vectors"),
    "other vectors": (scored(FIRST), {}, {"vectors": {"asking": 1.0}}, "not those of socratic-v1"),
    "a refusal's score": (scored(FIRST), {}, {"status": Status.REFUSED}, "refused has no score"),
    "a failure": (failed(FIRST), {"repeat": 3}, {}, "repeat 3 of 2"),
}


@pytest.mark.parametrize("case", FORGED)
async def test_a_fact_that_no_plan_holds_is_rejected_before_the_fold(store, case: str):
    event, run, data, reason = FORGED[case]
    await published(store, scored(SECOND))
    before = [cell.to_json() for cell in await store.cells()]
    work = Work(changed(event, run, **data), 1)
    good = Work(scored(SECOND), 1)
    handler = FactHandler(store, SystemClock())
    outcomes = [outcome async for batch in handler([work, good]) for outcome in batch]
    [rejected] = [outcome for outcome in outcomes if outcome.work is work]
    assert isinstance(rejected, Rejected)
    assert reason in rejected.reason
    assert [outcome.work for outcome in outcomes if isinstance(outcome, Handled)] == [good]
    assert [cell.to_json() for cell in await store.cells()] == before


@pytest.mark.parametrize(
    "field", [{"cost_nanodollars": -1}, {"cost_nanodollars": 10**30}, {"latency_ms": 10**400}]
)
def test_an_amount_beyond_all_bounds_is_no_event(field: dict[str, int]):
    event = scored(FIRST)
    body = encode(event.model_copy(update={"data": event.data.model_copy(update=field)}))
    with pytest.raises(InvalidEvent, match=next(iter(field))):
        decode(body)


async def test_facts_of_a_deleted_experiment_are_handled_and_change_nothing(store):
    await store.change_state(EXPERIMENT.experiment_id, ExperimentState.DELETED)
    await store.delete_rows(EXPERIMENT.experiment_id)
    work = Work(scored(FIRST), 1)
    handler = FactHandler(store, SystemClock())
    [outcome] = [outcome async for batch in handler([work]) for outcome in batch]
    assert isinstance(outcome, Handled)
    assert await store.cells() == []
