"""A throttled table, transactions that meet, and lost answers change no figure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

import pytest

from socratic_bench.adapters.stores.dynamodb import table as table_module
from socratic_bench.adapters.stores.dynamodb.clients import parse
from socratic_bench.adapters.stores.dynamodb.items import ItemKey
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Spending
from tests.contract.store.facts import (
    Facts,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    contents,
)
from tests.integration.dynamodb.faulty_gateway import (
    FaultyGateway,
    ThrottlingGateway,
    faulty_gateway,
    serving,
)
from tests.servers import aws_emulator, dynamodb
from tests.waiting import waiting_for

pytestmark = pytest.mark.long

Done = TypeVar("Done")


@pytest.fixture
async def table() -> AsyncIterator[str]:
    async with dynamodb.new_table() as url:
        yield url


@pytest.fixture
async def gateway() -> AsyncIterator[FaultyGateway]:
    async with faulty_gateway(aws_emulator.SERVER.address(), part=0.15, seed=20261123) as gateway:
        yield gateway


@pytest.fixture
async def stores(table: str, gateway: FaultyGateway) -> AsyncIterator[list[DynamoDBStore]]:
    """Three stores on one table, as three processes have them."""
    address = table.partition("?")[0]
    made = DynamoDBStore.from_url(table)
    await made.prepare()
    await made.close()
    through = f"{address}?endpoint={quote(gateway.url, safe='')}"
    stores = [DynamoDBStore.from_url(through) for _ in range(3)]
    yield stores
    for store in stores:
        await store.close()


async def until_done(work: Callable[[], Awaitable[Done]]) -> Done:
    """Repeat a call that the store could not serve, as services do."""
    while True:
        try:
            return await work()
        except StoreUnavailable:
            await asyncio.sleep(0.01)


async def test_folds_are_exact_through_every_fault(
    table: str, stores: list[DynamoDBStore], gateway: FaultyGateway
) -> None:
    runs = list(an_experiment(models=3, scenarios=4, repeats=10).runs())
    scores = [a_score(run, overall=number % 7 / 7) for number, run in enumerate(runs)]
    failures = [a_failure(run) for run in runs[::5]]
    chance = random.Random(1)

    async def fold(number: int) -> None:
        some, failed = chance.sample(scores, 40), chance.sample(failures, 8)
        await until_done(lambda: stores[number % 3].fold(some, failed))

    await asyncio.gather(*map(fold, range(12)))
    await until_done(lambda: stores[0].fold(scores, failures))
    assert set(gateway.faults) == {"throttled", "conflict", "lost before", "lost after"}
    assert (
        contents(await until_done(stores[1].cells)) == Facts(tuple(scores), tuple(failures)).cells
    )


async def test_money_and_calls_are_exact_through_every_fault(
    stores: list[DynamoDBStore], gateway: FaultyGateway
) -> None:
    planned = an_experiment(models=2, scenarios=5, repeats=6, budget=400)
    experiment = await until_done(lambda: stores[0].register(planned))
    runs = list(experiment.runs())

    async def carry_out(number: int) -> tuple[int, int]:
        """The number of granted calls, and of answered ones: the first one fails."""
        store, own = stores[number % 3], runs[number::6]
        claims = [claim_of(run, f"{number}", 10) for run in own]
        answers = await until_done(lambda: store.take_leases(claims, f"runner-{number}"))
        granted = [
            run for run, answer in zip(own, answers, strict=True) if answer is LeaseAnswer.GRANTED
        ]
        responses = [a_response(run, cost=7) for run in granted[1:]]
        await until_done(lambda: store.record(responses, [f"{number}"] * len(responses)))
        ends = [CallEnd(claim_of(run, f"{number}").key, billed=False) for run in granted[:1]]
        await until_done(lambda: store.end_calls(ends))
        return len(granted), len(responses)

    counts = await asyncio.gather(*map(carry_out, range(6)))
    granted, answered = (sum(count) for count in zip(*counts, strict=True))
    id_ = experiment.experiment_id
    spending = await until_done(lambda: stores[1].spending(id_))
    calls = await until_done(lambda: stores[2].calls(id_))
    assert calls == CallCount(calls=granted, turns=granted)
    assert spending == Spending(400, answered * 7, 0, False, answered * 7)
    found = await until_done(lambda: stores[0].responses([run.run_id for run in runs]))
    assert len(found) == answered
    assert gateway.faults.total() > 10


async def test_a_throttled_table_is_not_taken_for_one_with_other_writers(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "CONFLICT_SECONDS", 0.0)
    gateway = ThrottlingGateway(aws_emulator.SERVER.address())
    gateway.throttles = True
    made = DynamoDBStore.from_url(table)
    await made.prepare()
    await made.close()
    async with serving(gateway), waiting_for("the write"):
        address = table.partition("?")[0]
        through = DynamoTable(parse(f"{address}?endpoint={quote(gateway.url, safe='')}"))
        with pytest.raises(StoreUnavailable, match="the table took no more requests"):
            await through.update(ItemKey("a", "b"), "SET #figure = :figure", {"figure": 1})
        await through.close()
