"""A RabbitMQ server for tests, and a namespace in it for each of them."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import AMQPError, ChannelNotFoundEntity
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import connect, namespace_of
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.ports.broker import WorkQueue
from tests.servers.discovery import (
    NotHere,
    Server,
    Source,
    at_standard_port,
    in_docker,
    in_environment,
    wait_for,
)
from tests.servers.ending import ENDING
from tests.servers.rabbitmq_process import RabbitMQProcess
from tests.waiting import PATIENCE, until

ANSWER_SECONDS = 20.0
"""Seconds within which a server that can be used has answered."""


async def new_namespace() -> str:
    """The address of a private namespace."""
    server = await asyncio.to_thread(SERVER.address)
    return str(URL(server).update_query(namespace=f"test-{uuid4().hex[:12]}"))


@asynccontextmanager
async def namespace() -> AsyncIterator[str]:
    """The address of a namespace for services; their queues are deleted afterwards.

    Their group queues at the end of all tests, since only the server knows which there are.
    """
    url = await new_namespace()
    if not _with_group_queues:
        ENDING.callback(_delete_group_queues)
    _with_group_queues.append(url)
    try:
        yield url
    finally:
        await delete(url, WORK_QUEUES)


_with_group_queues: list[str] = []
"""The addresses of namespaces in which there may be group queues of any group."""


def _delete_group_queues() -> None:
    """Delete the group queues of our namespaces on a local server.

    Elsewhere they expire in a month.
    """
    try:
        listed = subprocess.run(
            ["rabbitmqctl", "-q", "list_queues", "name"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return
    ours = tuple(f"{namespace_of(url)}." for url in _with_group_queues)
    asyncio.run(_delete_all([name for name in listed if name.startswith(ours)]))


async def _delete_all(names: Sequence[str]) -> None:
    connection = await aio_pika.connect(
        str(URL(_with_group_queues[0]).without_query_params("namespace")), timeout=PATIENCE
    )
    async with connection, connection.channel() as channel:
        for name in names:
            await channel.queue_delete(name)


async def delete(url: str, queues: Sequence[WorkQueue], groups: Collection[str] = ()) -> None:
    """Delete queues, everything that belongs to them, and the queues of these groups.

    A server that a busy disk holds up is asked again: it may never answer the first request.
    """
    namespace = namespace_of(url)
    names = [topology.named(queue.name, namespace) for queue in queues]
    group_queues = [topology.group_queue(name, group) for name in names for group in groups]

    async def deleted() -> bool:
        try:
            async with (
                asyncio.timeout(2 * ANSWER_SECONDS),  # closing waits for an answer as well
                await aio_pika.connect(
                    str(URL(url).without_query_params("namespace")), timeout=ANSWER_SECONDS
                ) as connection,
                asyncio.timeout(ANSWER_SECONDS),
                connection.channel() as channel,
            ):
                await _delete(channel, namespace, names, group_queues)
        except (TimeoutError, AMQPError):
            return False
        return True

    await until(deleted, bool, "the deletion of the queues")


async def _delete(
    channel: AbstractChannel, namespace: str, names: Sequence[str], group_queues: Sequence[str]
) -> None:
    for name in names:
        for each in (
            name,
            topology.dead_letter_queue(name),
            topology.delayed_queue(name),
            topology.suspects_queue(name),
        ):
            await channel.queue_delete(each)
        await channel.exchange_delete(topology.group_queues_exchange(name))
    for group_queue in group_queues:
        await channel.queue_delete(group_queue)
    await channel.exchange_delete(topology.events_exchange(namespace))


async def has_group_queue(url: str, queue: WorkQueue, group: str) -> bool:
    """Whether there is a queue of a group."""
    group_queue = topology.group_queue(topology.named(queue.name, namespace_of(url)), group)
    connection = await aio_pika.connect(
        str(URL(url).without_query_params("namespace")), timeout=PATIENCE
    )
    async with connection, connection.channel() as channel:
        try:
            await channel.get_queue(group_queue)
        except ChannelNotFoundEntity:
            return False
    return True


def check(address: str) -> None:
    """Declare, use and delete a queue at `address`. Blocks; raises NotHere.

    A server that has lost track of its queues accepts connections, but then answers nothing.
    """

    async def ask() -> None:
        async with (
            asyncio.timeout(2 * ANSWER_SECONDS),  # closing waits for an answer as well
            await connect(URL(address)) as connection,
            asyncio.timeout(ANSWER_SECONDS),
        ):
            channel = await connection.channel()
            queue = await channel.declare_queue(
                f"test-{uuid4().hex[:12]}", durable=True, arguments={"x-queue-type": "quorum"}
            )
            await channel.default_exchange.publish(aio_pika.Message(b"here"), queue.name)
            await queue.get(no_ack=True)
            await channel.queue_delete(queue.name)

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
        Source("a private process", _private_process),
    ],
    check=check,
)
