"""One set of tests for every broker adapter: another adapter is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import MEMORY, RABBITMQ, BrokerAdapter, Limits
from tests.contract.broker.traffic import Traffic, new_queue


@pytest.fixture(scope="session", params=[MEMORY, RABBITMQ], ids=lambda adapter: adapter.name)
def adapter(request: pytest.FixtureRequest) -> BrokerAdapter:
    chosen: BrokerAdapter = request.param
    return chosen


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
