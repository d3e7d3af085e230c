"""The curator: folds once, announces again, and notices the end."""

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.consuming.outcomes import Handled, Work
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.aggregate_updated import AggregateUpdated
from socratic_bench.events.experiment_completed import ExperimentCompleted
from socratic_bench.events.response_scored import ResponseScored
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.scoring.statuses import Status
from socratic_curator.handlers import FactHandler
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
        vectors={"verbosity": 0.5},
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


async def test_scores_by_another_profile_do_not_announce_the_end_again(store):
    await published(store, scored(FIRST), scored(SECOND))
    fact = scored(FIRST).data.model_copy(update={"profile": "other-v1"})
    rescored = ResponseScored.of(fact, source="test", time=TIME)
    (announced,) = await published(store, rescored)
    assert isinstance(announced, AggregateUpdated)
    assert (announced.data.done, announced.data.planned) == (2, 2)
