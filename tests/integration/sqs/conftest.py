"""A namespace of an emulator for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.adapters import SQS
from tests.contract.broker.traffic import Traffic, new_queue
from tests.servers import sqs


@pytest.fixture
def traffic() -> Traffic:
    return Traffic(SQS)


@pytest.fixture
def queue() -> WorkQueue:
    return new_queue()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A namespace in which anything may be declared; it is deleted afterwards."""
    async with sqs.namespace() as address:
        yield address


@pytest.fixture
async def broker(url: str, queue: WorkQueue) -> AsyncIterator[SqsBroker]:
    opened = SqsBroker(url)
    try:
        await opened.declare([queue])
        yield opened
    finally:
        await opened.close()
