"""A queue on a real server for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from yarl import URL

from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.adapters import RABBITMQ
from tests.contract.broker.traffic import Traffic, new_queue
from tests.servers.discovery import NotHere, wait_for
from tests.servers.rabbitmq import check, delete, new_namespace
from tests.servers.rabbitmq_process import RabbitMQProcess
from tests.waiting import PATIENCE


@asynccontextmanager
async def stranger(url: str) -> AsyncIterator[AbstractChannel]:
    """A channel of a foreign client that does not know this project."""
    async with (
        await aio_pika.connect(
            str(URL(url).without_query_params("namespace")), timeout=PATIENCE
        ) as connection,
        connection.channel() as channel,
    ):
        yield channel


@pytest.fixture
def traffic() -> Traffic:
    return Traffic(RABBITMQ)


@pytest.fixture
def queue() -> WorkQueue:
    return new_queue()


@pytest.fixture
async def url(queue: WorkQueue) -> AsyncIterator[str]:
    """A namespace in which the queue may be declared; it is deleted afterwards."""
    address = await new_namespace()
    yield address
    await delete(address, [queue])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQProcess]:
    """A private server, for what the others must not see."""
    folder: Path = tmp_path_factory.mktemp("rabbitmq")
    try:
        started = RabbitMQProcess(folder)
    except NotHere as error:
        pytest.skip(str(error))
    started.start()
    wait_for(started.url, check)
    yield started
    started.kill()
