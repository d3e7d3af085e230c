"""The promises hold with several stores on the same data, and after any interruption."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from socratic_bench.domain.aggregates.cell import fold
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database, StoreAdapter, opened
from tests.contract.store.facts import (
    MONDAY,
    Facts,
    a_failure,
    a_response,
    a_run,
    a_score,
    an_experiment,
    contents,
    failures_in,
    record_unleased,
)
from tests.waiting import waiting_for


def _facts(experiment: Experiment) -> Facts:
    """Two turns of every run; some of them failed, for good or for a time."""
    scores, failures = [], []
    for number, run in enumerate(experiment.runs()):
        scores.append(a_score(run, turn=1, last_turn=False, overall=number % 7 / 7))
        if number % 5:
            scores.append(a_score(run, turn=2, overall=number % 11 / 11))
        if number % 5 < 2:
            failures.append(a_failure(run, turn=1 + number % 2))
    return Facts(tuple(scores), tuple(failures))


async def test_overlapping_folds_through_two_stores_give_the_exact_cells(
    store: Store, other_store: Store
) -> None:
    facts = _facts(an_experiment(models=3, scenarios=4, repeats=10, follow_ups=["Why?"]))
    chance = random.Random(20260302)

    async def fold_some(folder: Store) -> None:
        await folder.fold(
            chance.sample(facts.scores, 60), chance.sample(facts.failures, len(facts.failures) // 3)
        )

    await asyncio.gather(*(fold_some((store, other_store)[n % 2]) for n in range(30)))
    await asyncio.gather(
        store.fold(facts.scores, facts.failures), other_store.fold(facts.scores, facts.failures)
    )
    assert contents(await store.cells()) == facts.cells
    assert contents(await other_store.cells()) == facts.cells


async def test_a_failure_and_the_last_turn_of_its_run_at_the_same_time(
    store: Store, other_store: Store
) -> None:
    runs = [a_run(repeat) for repeat in range(1, 31)]
    facts = Facts(
        tuple(a_score(run, turn=2) for run in runs), tuple(a_failure(run, turn=1) for run in runs)
    )
    folds: list[Coroutine[Any, Any, Any]] = []
    for scored, failure in zip(facts.scores, facts.failures, strict=True):
        folds += [store.fold([scored], []), other_store.fold([], [failure])]
    await asyncio.gather(*folds)
    assert contents(await store.cells()) == facts.cells


async def test_what_one_store_wrote_the_other_reads(store: Store, other_store: Store) -> None:
    experiment = await store.register(an_experiment())
    run, *_ = experiment.runs()
    await record_unleased(store, [a_response(run)])
    await store.fold([a_score(run)], [])
    assert await other_store.experiment(experiment.experiment_id) == experiment
    assert await other_store.responses([run.run_id]) == {run.run_id: [a_response(run)]}
    assert contents(await other_store.cells()) == Facts((a_score(run),)).cells
    assert await other_store.revision() == await store.revision()


async def _cut_off(work: Coroutine[Any, Any, Any], seconds: float) -> bool:
    """Cancel `work` after some time; whether that came before its end."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return True
    return False


async def test_a_fold_cancelled_anywhere_is_folded_wholly_or_not_at_all(store: Store) -> None:
    experiment = an_experiment(models=3, scenarios=5, repeats=10, follow_ups=["Why?"])
    facts = _facts(experiment)
    cancelled = 0
    for number in range(0, 120, 3):
        batch = facts.scores[2 * number : 2 * number + 2]
        folding = store.fold(batch, facts.failures[:number])
        cancelled += await _cut_off(folding, seconds=number / 10_000)
        rows = [row async for page in store.score_rows(experiment.experiment_id) for row in page]
        assert sum(scored in rows for scored in batch) in {0, 2}
        failures = await failures_in(store, experiment.experiment_id)
        cells = await store.cells([experiment.experiment_id])
        assert contents(cells) == contents(fold(rows, failures).values())
        async with waiting_for("a write after a fold was cancelled"):
            await record_unleased(store, [a_response(a_run(number + 1))])
    assert cancelled
    await store.fold(facts.scores, facts.failures)
    assert contents(await store.cells([experiment.experiment_id])) == facts.cells


async def test_work_that_waits_goes_on_when_the_work_before_it_is_cancelled(store: Store) -> None:
    runs = [a_run(repeat) for repeat in range(1, 401)]
    first = asyncio.ensure_future(store.fold([a_score(run) for run in runs], []))
    waiting = [asyncio.ensure_future(store.fold([a_score(a_run(n))], [])) for n in (500, 501)]
    cut_off = asyncio.ensure_future(record_unleased(store, [a_response(run) for run in runs]))
    for _ in range(20):
        await asyncio.sleep(0)
    first.cancel()
    cut_off.cancel()
    async with waiting_for("the work behind what was cancelled"):
        await asyncio.gather(first, cut_off, return_exceptions=True)
        await asyncio.gather(*waiting)


async def test_reading_does_not_wait_for_what_is_being_written(
    adapter: StoreAdapter, store: Store
) -> None:
    runs = list(an_experiment(models=10, scenarios=10, repeats=30).runs())
    possible = {0, 100} if adapter.stores_calls_whole else range(101)
    writing = asyncio.ensure_future(store.fold([a_score(run) for run in runs], []))
    async with waiting_for("readings beside a write"):
        read = 0
        while not writing.done():
            assert len(await store.cells()) in possible
            read += 1
    await writing
    assert read > 1


async def test_a_revision_stands_for_one_state_of_the_cells_however_many_fold(
    store: Store, other_store: Store
) -> None:
    runs = list(an_experiment(models=4, scenarios=5, repeats=20).runs())
    stores = (store, other_store)

    async def fold(number: int) -> None:
        for start in range(number, len(runs), 40):
            await stores[number % 2].fold(
                [a_score(run) for run in runs[start : start + 40 : 8]], []
            )

    folding = asyncio.gather(*(fold(number) for number in range(8)))
    states: dict[int, object] = {}
    last = 0
    async with waiting_for("readings beside the folds"):
        while not folding.done():
            revision = int(await other_store.revision())
            cells = contents(await store.cells())
            assert revision >= last
            last = int(await store.revision())
            if revision == last:
                assert states.setdefault(revision, cells) == cells
    await folding
    assert int(await store.revision()) >= last
    assert await store.revision() == await other_store.revision()


async def test_everything_is_there_when_the_data_is_opened_anew(database: Database) -> None:
    experiment = an_experiment()
    run, failed, *_ = experiment.runs()
    async with opened(database) as store:
        await store.register(experiment)
        await record_unleased(store, [a_response(run)])
        await store.fold([a_score(run)], [a_failure(failed)])
        revision = await store.revision()
    async with opened(database) as store:
        assert await store.experiments() == [experiment]
        assert await record_unleased(store, [a_response(run, "later")]) == [a_response(run)]
        assert contents(await store.cells()) == Facts((a_score(run),), (a_failure(failed),)).cells
        assert await store.revision() == revision


async def test_preparing_again_and_at_the_same_time_changes_nothing(database: Database) -> None:
    async with opened(database) as store, opened(database) as other_store:
        await store.fold([a_score(a_run())], [])
        await asyncio.gather(*(each.prepare() for each in (store, other_store) * 3))
        assert contents(await other_store.cells()) == Facts((a_score(a_run()),)).cells


async def test_closing_waits_for_what_is_being_written(database: Database) -> None:
    runs = list(an_experiment(models=10, scenarios=10, repeats=10).runs())
    async with opened(database) as store:
        writing = asyncio.ensure_future(store.fold([a_score(run) for run in runs], []))
        await asyncio.sleep(0)  # it has begun
        await store.close()
        assert writing.done()
        await writing
    async with opened(database) as store:
        assert contents(await store.cells()) == Facts(tuple(a_score(run) for run in runs)).cells


async def test_a_closed_store_says_so_and_may_be_closed_again(database: Database) -> None:
    async with opened(database) as store:
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.complete("exp", MONDAY)


async def test_a_prepared_store_can_be_read_until_it_is_closed(store: Store):
    await store.check_readable()
    assert await store.experiments() == []
    await store.close()
    with pytest.raises(StoreError):
        await store.check_readable()
