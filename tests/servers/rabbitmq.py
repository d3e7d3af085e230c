"""A RabbitMQ server for tests, and a corner of it for each of them."""

from __future__ import annotations

import asyncio
import atexit
import subprocess
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import aio_pika
from yarl import URL

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.link import connect, namespace_of
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.ports.broker import WorkQueue
from tests.servers.discovery import (
    NotHere,
    Place,
    Server,
    at_standard_port,
    in_docker,
    in_environment,
    wait_for,
)
from tests.servers.rabbitmq_process import RabbitMQProcess

PATIENCE = 5.0
"""Seconds within which a server that can be used has answered."""


async def new_namespace() -> str:
    """The address of a namespace nobody else uses."""
    server = await asyncio.to_thread(SERVER.address)
    return str(URL(server).update_query(namespace=f"test-{uuid4().hex[:12]}"))


@asynccontextmanager
async def namespace() -> AsyncIterator[str]:
    """The address of a namespace for services; their queues are deleted afterwards.

    Their lanes when this process ends, since only the server knows which there are.
    """
    url = await new_namespace()
    if not _with_lanes:
        atexit.register(_delete_lanes)
    _with_lanes.append(url)
    try:
        yield url
    finally:
        await delete(url, WORK_QUEUES)


_with_lanes: list[str] = []
"""The addresses of namespaces in which there may be lanes of any group."""


def _delete_lanes() -> None:
    """Where the server is on this machine and tells. Elsewhere they go by themselves in a month."""
    try:
        listed = subprocess.run(
            ["rabbitmqctl", "-q", "list_queues", "name"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return
    ours = tuple(f"{namespace_of(url)}." for url in _with_lanes)
    asyncio.run(_delete_all([name for name in listed if name.startswith(ours)]))


async def _delete_all(names: Sequence[str]) -> None:
    connection = await aio_pika.connect(str(URL(_with_lanes[0]).without_query_params("namespace")))
    async with connection, connection.channel() as channel:
        for name in names:
            await channel.queue_delete(name)


async def delete(url: str, queues: Sequence[WorkQueue], groups: Collection[str] = ()) -> None:
    """Delete queues and all that was declared beside them, with the lanes of these groups."""
    namespace = namespace_of(url)
    names = [topology.named(queue.name, namespace) for queue in queues]
    lanes = [topology.lane(name, group) for name in names for group in groups]
    connection = await aio_pika.connect(str(URL(url).without_query_params("namespace")))
    async with connection, connection.channel() as channel:
        for name in names:
            for each in (
                name,
                topology.dead_letter_queue(name),
                topology.delayed_queue(name),
                topology.suspects_queue(name),
            ):
                await channel.queue_delete(each)
            await channel.exchange_delete(topology.lanes_exchange(name))
        for lane in lanes:
            await channel.queue_delete(lane)
        await channel.exchange_delete(topology.events_exchange(namespace))


def check(address: str) -> None:
    """Whether there is a server at `address` that lets us in. Blocks; raises NotHere."""

    async def ask() -> None:
        async with asyncio.timeout(PATIENCE):
            connection = await connect(URL(address))
            await connection.close()

    try:
        asyncio.run(ask())
    except Exception as error:
        raise NotHere(str(error) or "no answer") from error


def _private_process(started: ExitStack) -> str:
    """A server of our own in a temporary folder, gone without a trace afterwards."""
    folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="socratic-rabbitmq-")))
    server = RabbitMQProcess(folder)
    server.start()
    started.callback(server.kill)
    wait_for(server.url, check)
    return server.url


SERVER = Server(
    "RabbitMQ server",
    [
        in_environment("SOCRATIC_TEST_RABBITMQ_URL", check),
        at_standard_port("127.0.0.1:5672", ["amqp://guest:guest@127.0.0.1:5672/"], check),
        in_docker(
            "rabbitmq:4-alpine",
            5672,
            {},
            lambda host, port: f"amqp://guest:guest@{host}:{port}/",
            check,
        ),
        Place("a private process", _private_process),
    ],
)
