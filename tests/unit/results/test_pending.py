"""Pending runs are listed one by one, with one batch of them in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.run import Run
from socratic_bench.results.pending import PendingRun, WaitsFor, pending_runs
from tests.contract.store.facts import (
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)

PLANNED = an_experiment(models=2, scenarios=3, repeats=3)
RUNS = list(PLANNED.runs())


@pytest.fixture
def asked(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each question to the store was about."""
    sizes: list[int] = []
    for name in ("done_runs", "responses"):
        ask = getattr(store, name)

        async def counted(*arguments, ask=ask):
            sizes.append(len(arguments[-1]))
            return await ask(*arguments)

        monkeypatch.setattr(store, name, counted)
    return sizes


async def pending(store: MemoryStore, experiment=PLANNED, **options) -> list[PendingRun]:
    return [run async for run in pending_runs(experiment, store, **options)]


def ids(runs: Collection[PendingRun | Run]) -> list[str]:
    return [run.run_id for run in runs]


async def test_before_anything_is_done_every_run_is_named_in_the_order_of_the_plan(store):
    await store.register(PLANNED)

    runs = await pending(store, batch_size=4)

    assert ids(runs) == ids(RUNS)
    assert {run.waits_for for run in runs} == {WaitsFor.RESPONSE}
    assert [(run.model_id, run.scenario_id, run.dimension, run.repeat) for run in runs] == [
        (run.model_id, run.scenario_id, run.dimension, run.repeat) for run in RUNS
    ]


async def test_scored_and_failed_runs_are_done(store):
    await store.register(PLANNED)
    scored, failed, *others = RUNS
    await store.fold([a_score(scored)], [a_failure(failed)])

    assert ids(await pending(store)) == ids(others)


async def test_a_run_with_a_stored_response_waits_for_its_score(store):
    await store.register(PLANNED)
    answered, *_ = RUNS
    await record_unleased(store, [a_response(answered)])

    first, *others = await pending(store)

    assert (first.run_id, first.waits_for) == (answered.run_id, WaitsFor.SCORE)
    assert {run.waits_for for run in others} == {WaitsFor.RESPONSE}


async def test_a_run_that_stopped_between_two_turns_waits_for_the_next_response(store):
    planned = an_experiment(follow_ups=("And then?", "Why?"))
    await store.register(planned)
    run, *_ = planned.runs()
    await record_unleased(store, [a_response(run, turn=turn, last_turn=False) for turn in (1, 2)])
    await store.fold([a_score(run, turn=turn, last_turn=False) for turn in (1, 2)], ())

    first, *_ = await pending(store, planned)

    assert (first.waits_for, first.turns_answered, first.turns) == (WaitsFor.RESPONSE, 2, 3)


async def test_a_run_whose_early_turn_lost_its_score_is_named_though_it_counts_as_ended(store):
    planned = an_experiment(follow_ups=("And then?",))
    await store.register(planned)
    run, *_ = planned.runs()
    await record_unleased(store, [a_response(run, last_turn=False), a_response(run, turn=2)])
    await store.fold([a_score(run, turn=2)], ())
    assert (await store.progress(planned.experiment_id)).done == 1

    first, *_ = await pending(store, planned)

    assert (first.run_id, first.waits_for) == (run.run_id, WaitsFor.SCORE)


async def test_nothing_is_named_once_everything_is_done(store):
    await store.register(PLANNED)
    await store.fold([a_score(run) for run in RUNS], ())

    assert await pending(store, batch_size=5) == []


async def test_the_store_is_asked_about_one_batch_at_a_time_and_only_when_it_is_needed(
    store, asked
):
    await store.register(PLANNED)

    naming = pending_runs(PLANNED, store, batch_size=4)
    await anext(naming)
    assert asked == [4, 4]
    assert isinstance(naming, AsyncGenerator)
    await naming.aclose()


async def test_responses_are_looked_up_only_for_what_is_not_done(store, asked):
    await store.register(PLANNED)
    await store.fold([a_score(run) for run in RUNS[1:]], ())

    assert ids(await pending(store, batch_size=6)) == ids(RUNS[:1])
    assert asked == [3, 1]


async def test_conversations_with_runs_left_come_first_and_unscored_responses_after_them(store):
    planned = an_experiment(models=2, scenarios=1, repeats=1, follow_ups=("And then?",))
    await store.register(planned)
    unscored, left = planned.runs()
    await record_unleased(store, [a_response(unscored, last_turn=False)])
    await store.fold([], [a_failure(unscored, turn=2)])

    assert ids(await pending(store, planned)) == ids([left, unscored])
