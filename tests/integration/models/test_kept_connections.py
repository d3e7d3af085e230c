"""Which connections are used again, and which never: a call on one that ends is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import create_default_context

import aiohttp
import pytest

from socratic_bench.errors import FailureKind
from socratic_bench.testing.samples import a_question
from socratic_runner.models.http import connectors
from socratic_runner.models.http.connectors import QuietConnector, RestedConnector
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.providers.certificates import Certificate, certificate_for
from tests.servers.providers.raw_server import (
    Answering,
    RawServer,
    Request,
    completion,
    response,
    serving,
)

MODEL = "openai-compatible/m"
CLOSING_CALLS = 200
"""Calls of a server that closes after each reply: each meets its end at another moment."""

UNASKED = response("200 OK", b"a reply that nobody asked for")


@pytest.fixture(params=["http", "https"])
def certificate(request: pytest.FixtureRequest, tmp_path: Path) -> Certificate | None:
    """The server's certificate; None without TLS."""
    return None if request.param == "http" else certificate_for("IP:127.0.0.1", tmp_path)


@asynccontextmanager
async def called_over(
    answer: Answering, certificate: Certificate | None
) -> AsyncIterator[tuple[RawServer, Callable[[], Awaitable[str]]]]:
    """A server, and calls of it by a session that keeps quiet connections."""
    trusted = create_default_context(cafile=certificate.trusted) if certificate else True
    async with (
        serving(answer, tls=certificate.context if certificate else None) as server,
        aiohttp.ClientSession(connector=QuietConnector()) as session,
    ):

        async def call() -> str:
            async with session.post(server.address, data=b"?", ssl=trusted) as reply:
                return await reply.text()

        yield server, call


@pytest.mark.parametrize("is_read", [True, False])
async def test_an_idle_connection_on_which_something_came_is_not_used_again(
    is_read: bool, certificate: Certificate | None
):
    writers: list[asyncio.StreamWriter] = []

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(response("200 OK", f"reply {len(writers)}".encode()))

    async with called_over(answer, certificate) as (server, call):
        assert [await call(), await call()] == ["reply 1", "reply 2"]
        assert server.connections == 1, "a connection on which nothing came is used again"
        writers[0].write(UNASKED)
        for _ in range(100 if is_read else 0):
            await asyncio.sleep(0)  # lets the bytes be read
        assert await call() == "reply 3"
        assert server.connections == 2


async def test_an_idle_connection_that_was_closed_silently_is_not_used_again(
    certificate: Certificate | None,
):
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", b"reply"))
        await writer.drain()
        writer.close()

    async with called_over(answer, certificate) as (server, call):
        lost = 0
        for number in range(CLOSING_CALLS):
            for _ in range(number % 20):
                await asyncio.sleep(0)
            try:
                assert await call() == "reply"
            except aiohttp.ClientConnectionError:
                lost += 1  # its end came after the look at it
        assert server.connections == len(server.requests) >= CLOSING_CALLS - lost
        assert lost <= CLOSING_CALLS / 10


async def test_a_server_over_tls_that_lost_a_call_gets_a_connection_for_each(tmp_path: Path):
    async def lose_the_second(_request: Request, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == 2:
            writer.close()
        else:
            writer.write(response("200 OK", b"reply"))

    connector = QuietConnector()
    certificate = certificate_for("IP:127.0.0.1", tmp_path)
    trusted = create_default_context(cafile=certificate.trusted)
    async with (
        serving(lose_the_second, tls=certificate.context) as server,
        aiohttp.ClientSession(connector=connector) as session,
    ):

        async def call() -> str:
            async with session.post(server.address, data=b"?", ssl=trusted) as reply:
                return await reply.text()

        assert await call() == "reply"
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await call()
        assert server.connections == 1
        connector.distrust()
        for number in (2, 3, 4):
            assert await call() == "reply"
            assert server.connections == number


@pytest.fixture
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectors, "REST_SECONDS", 0.0)


async def call(session: aiohttp.ClientSession, server: RawServer) -> str:
    async with session.post(server.address, data=b"?") as reply:
        return await reply.text()


async def reply_to(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response("200 OK", b"reply"))


async def test_a_connection_without_tls_is_used_again_after_a_rest(
    monkeypatch: pytest.MonkeyPatch,
):
    async with (
        serving(reply_to) as server,
        aiohttp.ClientSession(connector=RestedConnector()) as session,
    ):
        for number in range(1, 4):
            assert await call(session, server) == "reply"
            assert server.connections == number
        monkeypatch.setattr(connectors, "REST_SECONDS", 0.0)
        for _ in range(3):
            assert await call(session, server) == "reply"
        assert server.connections == 3


@pytest.mark.usefixtures("without_rest")
async def test_a_server_that_ends_a_connection_silently_gets_one_for_each_call():
    async def end_the_first(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", b"reply"))
        if server.connections == 1:
            await writer.drain()
            writer.close()

    async with (
        serving(end_the_first) as server,
        aiohttp.ClientSession(connector=RestedConnector()) as session,
    ):
        for number in range(1, 5):
            assert await call(session, server) == "reply"
            await server.gone.wait()
            assert server.connections == number


@pytest.mark.usefixtures("without_rest")
async def test_a_server_that_lost_a_call_gets_a_connection_for_each(open_model: OpenModel):
    async def lose_the_second(_request: Request, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == 2:
            writer.close()
        else:
            writer.write(response("200 OK", completion("Why?"), "Content-Type: application/json"))

    async with serving(lose_the_second) as server:
        client = open_model(MODEL, server.address, stream=False)
        await client.ask(a_question())
        assert (await failure_of(client)).kind is FailureKind.UNREACHABLE
        assert server.connections == 1
        for number in (2, 3, 4):
            assert (await client.ask(a_question())).text == "Why?"
            assert server.connections == number


@pytest.mark.usefixtures("without_rest")
async def test_no_more_connections_rest_than_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connectors, "MOST_RESTING", 2)
    waiting = asyncio.Barrier(6)

    async def reply_together(request: Request, writer: asyncio.StreamWriter) -> None:
        await waiting.wait()
        await reply_to(request, writer)

    async with (
        serving(reply_together) as server,
        aiohttp.ClientSession(connector=RestedConnector()) as session,
    ):
        for connections in (6, 10):
            async with asyncio.TaskGroup() as calls:
                for _ in range(6):
                    calls.create_task(call(session, server))
            assert server.connections == connections


@pytest.mark.usefixtures("without_rest")
async def test_what_is_idle_of_a_server_that_is_not_trusted_is_not_used():
    begun, go_on, end = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()

    async def end_the_first(request: Request, writer: asyncio.StreamWriter) -> None:
        number = len(server.requests)
        begun.release()
        if number in {2, 3}:
            await go_on.wait()
        await reply_to(request, writer)
        if number == 1:
            await end.wait()
            writer.close()

    async with (
        serving(end_the_first) as server,
        aiohttp.ClientSession(connector=RestedConnector()) as session,
        asyncio.TaskGroup() as calls,
    ):
        first = calls.create_task(call(session, server))
        await begun.acquire()
        others = [calls.create_task(call(session, server)) for _ in range(2)]
        for _ in others:
            await begun.acquire()
        await first  # its connection is the oldest that is idle
        go_on.set()
        await asyncio.wait(others)
        end.set()
        await server.gone.wait()
        for connections in (4, 5):
            assert await call(session, server) == "reply"
            assert server.connections == connections
