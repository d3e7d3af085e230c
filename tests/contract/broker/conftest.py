"""One set of tests for every broker adapter: another adapter is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import (
    MEMORY,
    RABBITMQ,
    SQS,
    SQS_OF_MOTO,
    BrokerAdapter,
    Limits,
)
from tests.contract.broker.traffic import Traffic, new_queue

ADAPTERS = [
    MEMORY,
    RABBITMQ,
    *(pytest.param(each, marks=pytest.mark.long) for each in (SQS, SQS_OF_MOTO)),
]


@pytest.fixture(scope="session", params=ADAPTERS, ids=lambda adapter: adapter.name)
def adapter(request: pytest.FixtureRequest) -> BrokerAdapter:
    chosen: BrokerAdapter = request.param
    return chosen


@pytest.fixture
def needs_load(adapter: BrokerAdapter) -> None:
    if not adapter.bears_load:
        pytest.skip(f"{adapter.name} bears no load")


@pytest.fixture(scope="session")
def traffic(adapter: BrokerAdapter) -> Traffic:
    return Traffic(adapter)


@pytest.fixture
async def broker(adapter: BrokerAdapter) -> AsyncIterator[Broker]:
    async with adapter.open(Limits(delivery_limit=3)) as opened:
        yield opened


@pytest.fixture
async def queue(broker: Broker) -> WorkQueue:
    declared = new_queue()
    await broker.declare([declared])
    return declared
