"""Shared fixtures: a terminal, and the servers of the services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.addresses import open_store
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.servers import postgresql, rabbitmq
from tests.servers.discovery import NotHere, missing, wait_for
from tests.servers.rabbitmq_process import RabbitMQProcess

Addresses = dict[str, str]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal whose store is a file."""
    return Terminal(tmp_path)


@pytest.fixture
async def addresses() -> AsyncIterator[Addresses]:
    """A broker and a store for services, as their settings name them."""
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        yield {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": store}


@pytest.fixture
def pace() -> dict[str, str]:
    """Settings of services besides their addresses; a module overrides them."""
    return {}


@pytest.fixture
def environment(addresses: Addresses, pace: dict[str, str]) -> dict[str, str]:
    """The settings of services."""
    return {**addresses, **pace}


@pytest.fixture
async def store(addresses: Addresses) -> AsyncIterator[Store]:
    """The store of the services."""
    store = open_store(addresses["SOCRATIC_STORE_URL"])
    yield store
    await store.close()


@pytest.fixture
def services_terminal(tmp_path: Path, addresses: Addresses) -> Terminal:
    """A terminal whose broker and store are those of the services."""
    return Terminal(tmp_path, addresses)


@pytest.fixture
async def own_rabbitmq(tmp_path: Path) -> AsyncIterator[RabbitMQProcess]:
    """A server that the test may break."""
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    try:
        server = RabbitMQProcess(folder)
        server.start()
    except NotHere as error:
        missing(str(error))
    try:
        await asyncio.to_thread(wait_for, server.url, rabbitmq.check)
        yield server
    finally:
        await asyncio.to_thread(server.kill)
