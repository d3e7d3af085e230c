"""Attempts to connect: cancelled ones leave nothing behind, refusals have the server's words."""

from __future__ import annotations

import asyncio
import re
from functools import partial

import pytest
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection, connect
from socratic_bench.errors import BrokerRefused, BrokerUnavailable
from tests.servers import rabbitmq
from tests.servers.proxy import proxy
from tests.waiting import until

pytestmark = pytest.mark.connected

ROUNDS = 400


async def others() -> set[str]:
    """The tasks beside the test."""
    return {repr(task) for task in asyncio.all_tasks() - {asyncio.current_task()}}


@pytest.mark.long
async def test_an_attempt_that_is_cancelled_at_any_moment_leaves_no_task_behind() -> None:
    connecting_to = ReconnectingConnection(await asyncio.to_thread(rabbitmq.SERVER.address))
    for steps in range(ROUNDS):
        connecting = asyncio.create_task(connecting_to.another())
        for _ in range(steps):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            await connecting.result().close()
        await until(others, lambda left: not left, f"the end of attempt {steps}", patience=30)


async def test_a_virtual_host_that_is_not_there_is_told_at_once_in_the_servers_words() -> None:
    server = URL(await asyncio.to_thread(rabbitmq.SERVER.address))
    broker = RabbitMQBroker(str(server.with_path("/nowhere")))
    words = r"/nowhere: the broker refuses: NOT_ALLOWED - vhost nowhere not found; create the"
    with pytest.raises(BrokerRefused, match=words):
        await broker.ping()
    await broker.close()


async def test_a_server_that_is_too_old_is_refused_with_its_version() -> None:
    server = URL(await asyncio.to_thread(rabbitmq.SERVER.address))
    async with proxy(server.host or "", server.port or 5672) as between:
        between.change = partial(re.compile(rb"(?s)(\x07versionS.{4})\d").sub, rb"\g<1>2")
        with pytest.raises(
            BrokerUnavailable, match=r"RabbitMQ 2\.\d+\.\d+, .* upgrade it to 3\.10"
        ):
            await connect(server.with_host("127.0.0.1").with_port(between.port))
