"""The table: who makes it, which version reads it, and what it holds of a response."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any
from unittest import mock

import pytest

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.clients import parse
from socratic_bench.adapters.stores.dynamodb.items import at, size
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import StoreBroken, StoreRefused
from tests.contract.store.facts import (
    a_conversation,
    a_failure,
    a_response,
    a_run,
    an_experiment,
    record_unleased,
)
from tests.servers import aws_emulator, dynamodb

pytestmark = pytest.mark.long


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with dynamodb.new_table() as url:
        store = DynamoDBStore.from_url(url)
        await store.prepare()
        await store.close()
        yield url


@pytest.fixture
async def table(url: str) -> AsyncIterator[DynamoTable]:
    """The table past the store."""
    table = DynamoTable(parse(url))
    yield table
    await table.close()


@pytest.fixture
async def store(url: str) -> AsyncIterator[DynamoDBStore]:
    store = DynamoDBStore.from_url(url)
    yield store
    await store.close()


async def test_without_an_endpoint_in_the_address_no_table_is_made() -> None:
    address = aws_emulator.SERVER.address()
    environment = {**aws_emulator.credentials(), "AWS_ENDPOINT_URL": address}
    with mock.patch.dict(os.environ, environment):
        store = DynamoDBStore.from_url("dynamodb://socratic-test-not-there")
        for method in (store.prepare, store.check_readable, store.ping):
            with pytest.raises(StoreBroken, match="no such table; the deployment makes it"):
                await method()
        await store.close()


async def test_a_table_of_a_newer_version_is_left_alone(
    store: DynamoDBStore, table: DynamoTable
) -> None:
    await table.put(at(keys.SCHEMA, {"schema": 3, "oldest_reader": 2}))
    for method in (store.prepare, store.check_readable):
        with pytest.raises(StoreBroken, match="upgrade"):
            await method()


async def test_a_table_of_a_newer_version_that_this_one_may_read_is_used(
    store: DynamoDBStore, table: DynamoTable
) -> None:
    await table.put(at(keys.SCHEMA, {"schema": 3, "oldest_reader": 1}))
    await store.prepare()
    await store.check_readable()


async def test_a_turn_leaves_the_turns_before_it_to_their_own_items(
    store: DynamoDBStore, table: DynamoTable
) -> None:
    words = Random(1)
    run = a_run()
    turns = [
        turn.model_copy(update={"text": words.randbytes(600).hex()})
        for turn in a_conversation(run, turns=12)
    ]
    for number, turn in enumerate(turns):
        earlier = tuple(each.as_earlier_turn for each in turns[:number])
        turns[number] = turn.model_copy(update={"earlier_turns": earlier})
        await store.record([turns[number]])
    items = await table.query(keys.run(run.run_id))
    assert max(map(size, items)) < 2_000
    assert await store.responses([run.run_id]) == {run.run_id: turns}


async def test_without_a_bucket_a_response_that_no_item_holds_is_refused_and_its_run_named(
    store: DynamoDBStore,
) -> None:
    run = a_run()
    text = Random(1).randbytes(400_000).hex()
    with pytest.raises(StoreRefused, match=rf"{run.run_id}/1 takes 4.*add \?bucket="):
        await store.record([a_response(run, text)])
    await store.record([a_response(run, "a" * 1_000_000)])
    assert len((await store.responses([run.run_id]))[run.run_id][0].text) == 1_000_000


async def test_a_response_that_no_item_holds_is_in_the_bucket_until_its_experiment_is_deleted(
    url: str,
) -> None:
    async with dynamodb.new_bucket() as bucket:
        store, other = (DynamoDBStore.from_url(f"{url}&bucket={bucket}") for _ in range(2))
        experiment = await store.register(an_experiment(follow_ups=["Why?"]))
        run, *_ = experiment.runs()
        long = Random(1).randbytes(400_000).hex()
        turns = a_conversation(run, turns=2)
        turns[0] = turns[0].model_copy(update={"text": long})
        turns[1] = turns[1].model_copy(update={"earlier_turns": (turns[0].as_earlier_turn,)})
        assert await store.record(turns) == turns
        assert await store.record([a_response(run, "again", last_turn=False)]) == turns[:1]
        [key] = await dynamodb.objects(bucket)
        assert key.startswith(f"responses/{run.run_id}/1/")
        assert await other.responses([run.run_id]) == {run.run_id: turns}
        assert (
            sorted(
                await other.unscored_responses(experiment.experiment_id, 9), key=lambda it: it.turn
            )
            == turns
        )
        await other.change_state(experiment.experiment_id, ExperimentState.DELETED)
        while await other.delete_rows(experiment.experiment_id):
            pass
        assert await dynamodb.objects(bucket) == []
        for each in (store, other):
            await each.close()


async def test_failures_are_counted_with_a_request_for_each_hundred_runs(
    store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = await store.register(an_experiment(repeats=40, follow_ups=["Why?"]))
    runs = [*experiment.runs()]
    await store.fold([], [a_failure(run) for run in runs])
    await record_unleased(store, [a_response(run, last_turn=False) for run in runs[:30]])
    requests: Counter[str] = Counter()
    call = DynamoTable.call

    async def counted(table: DynamoTable, operation: str, **parameters: Any) -> Mapping[str, Any]:
        requests[operation] += 1
        return await call(table, operation, **parameters)

    monkeypatch.setattr(DynamoTable, "call", counted)
    kinds = await store.failure_kinds(experiment.experiment_id)

    assert sum(each.runs for each in kinds) == len(runs) == 240
    assert requests["batch_get_item"] == 3 + 1  # of the first turn, and of the second
    assert requests.total() <= 8
