"""One set of tests for every broker adapter: another adapter is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import (
    MEMORY,
    RABBITMQ,
    SKETCH,
    SQS,
    SQS_OF_MOTO,
    BrokerAdapter,
    Limits,
)
from tests.contract.broker.traffic import Traffic, new_queue
from tests.lengths import on_server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "adapter" in metafunc.fixturenames:
        later = on_server(metafunc.definition)
        adapters = [
            pytest.param(MEMORY, id=MEMORY.name),
            pytest.param(SKETCH, id=SKETCH.name),
            *(pytest.param(each, id=each.name, marks=later) for each in (RABBITMQ, SQS)),
        ]
        if metafunc.definition.get_closest_marker("smoke"):
            second = pytest.param(SQS_OF_MOTO, id=SQS_OF_MOTO.name, marks=pytest.mark.long)
            adapters.append(second)
        metafunc.parametrize("adapter", adapters, indirect=True, scope="session")


@pytest.fixture(scope="session")
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
