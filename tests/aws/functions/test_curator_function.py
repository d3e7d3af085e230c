"""The curator as its package: scores and failures in, cells in the table out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import (
    BROADCASTS,
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
)
from socratic_bench.domain.run import Run
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import ResponseScored, RunFailed
from tests.aws.lambda_runtime import Runtime, running
from tests.aws.place import Place, a_place
from tests.aws.records import poisoned, received
from tests.contract.store.facts import a_failure, a_score, an_experiment, contents
from tests.unit.events.examples import TIME

EXPERIMENT = an_experiment(models=1, scenarios=2, repeats=4)
RUNS = list(EXPERIMENT.runs())
HANDLER = "socratic_curator.entrypoints.lambda_function.handler"
NOTHING_BACK = {"batchItemFailures": []}


def of_its_vectors(run: Run) -> ScoredResponse:
    """A score whose overall is the mean of its vectors: the curator refuses another."""
    scored = a_score(run)
    assert scored.vectors is not None
    values = [value for value in scored.vectors.values() if value is not None]
    return scored.model_copy(update={"overall": sum(values) / len(values)})


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_place((CURATOR_RESPONSE_SCORED, CURATOR_RUN_FAILED), BROADCASTS) as place:
        await place.store.register(EXPERIMENT)
        yield place


@pytest.fixture
def curator(packages: Path, tmp_path: Path, place: Place) -> Iterator[Runtime]:
    with running(packages, "curator", HANDLER, tmp_path, place.environment) as runtime:
        yield runtime


async def publish_scores(place: Place, runs: list[Run]) -> None:
    events = [ResponseScored.of(of_its_vectors(run), source="test", time=TIME) for run in runs]
    await place.broker.publish([to_message(each) for each in events])


async def assert_folded(place: Place, scored: list[Run], failed: list[Run]) -> None:
    """The cells are those that another store has of the same facts."""
    other = MemoryStore()
    await other.prepare()
    await other.register(EXPERIMENT)
    await other.fold([of_its_vectors(run) for run in scored], [a_failure(run) for run in failed])
    ids = [EXPERIMENT.experiment_id]
    assert contents(await place.store.cells(ids)) == contents(await other.cells(ids))


async def test_it_folds_the_batches_of_both_queues_and_a_repeated_one_once(
    curator: Runtime, place: Place
) -> None:
    scored, failed = RUNS[:5], RUNS[5:]
    await publish_scores(place, scored)
    events = [RunFailed.of(a_failure(run), source="test", time=TIME) for run in failed]
    await place.broker.publish([to_message(each) for each in events])
    scores = await received(place.broker_url, CURATOR_RESPONSE_SCORED.name)
    failures = await received(place.broker_url, CURATOR_RUN_FAILED.name)
    for batch in (scores, failures, scores):
        assert curator.invoke(batch) == NOTHING_BACK
    await assert_folded(place, scored, failed)


async def test_a_poisoned_record_becomes_a_dead_letter_and_the_others_are_folded(
    curator: Runtime, place: Place
) -> None:
    await publish_scores(place, RUNS)
    batch = await received(place.broker_url, CURATOR_RESPONSE_SCORED.name)
    batch["Records"].insert(0, poisoned(CURATOR_RESPONSE_SCORED.name))
    assert curator.invoke(batch) == NOTHING_BACK
    await assert_folded(place, RUNS, [])
    [dead] = await place.broker.dead_letters(CURATOR_RESPONSE_SCORED.name)
    assert dead.message.body == b"{not an event"


async def test_it_folds_on_after_it_was_frozen(curator: Runtime, place: Place) -> None:
    for number, run in enumerate(RUNS[:3], start=1):
        await publish_scores(place, [run])
        batch = await received(place.broker_url, CURATOR_RESPONSE_SCORED.name)
        assert curator.invoke(batch) == NOTHING_BACK
        with curator.frozen():
            await assert_folded(place, RUNS[:number], [])
