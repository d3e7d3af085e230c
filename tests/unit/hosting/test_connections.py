"""Connections within limits, on real sockets: slow clients give way, and others are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from socratic_bench.hosting.http.server import (
    HEAD_BYTES,
    MOST_CONNECTIONS,
    ConnectionLimits,
    _Connection,
    most_connections,
    serving,
)
from tests.waiting import until, waiting_for

NEVER = 3600.0
MOST = 20
LARGE = 32 * 1024 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def say_hello(_request: Request) -> Response:
    return Response(b"hello")


async def take(request: Request) -> Response:
    return Response(b"%d" % len(await request.body()))


async def give_much(_request: Request) -> Response:
    return Response(b"x" * LARGE)


async def answer_early(request: Request) -> Response:
    """Begin the answer, and read the body after that."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"begun"
        with suppress(ClientDisconnect):
            await request.body()

    return StreamingResponse(parts())


APP = Starlette(
    routes=[
        Route("/", say_hello),
        Route("/take", take, methods=["POST"]),
        Route("/early", answer_early, methods=["POST"]),
        Route("/much", give_much),
    ]
)


class Server:
    """A server that a test speaks to byte by byte."""

    def __init__(self, address: str) -> None:
        self._port = int(address.rpartition(":")[2])
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"") -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        writer.write(sent)
        return reader, writer

    async def ask(self, path: str = "/") -> bytes:
        reader, writer = await self.connect(f"GET {path} HTTP/1.1\r\nhost: here\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return head

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def server(most: int = MOST, **seconds: float) -> AsyncIterator[Server]:
    patient = {"head": NEVER, "body": NEVER, "reading": NEVER, "look": 0.05}
    limits = ConnectionLimits(most, **{**patient, **seconds})
    async with serving(APP, "127.0.0.1", 0, shutdown_timeout=1, limits=limits) as address:
        speaking = Server(address)
        try:
            yield speaking
        finally:
            speaking.close()


async def ended(connection: Connection) -> bytes:
    """The bytes that arrived before the server ended the connection."""
    try:
        return await connection[0].read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: here\r\nx-more: "])
async def test_a_connection_whose_head_does_not_come_is_ended(sent: bytes):
    async with server(head=0.2) as speaking, waiting_for("the end of a half-open connection"):
        assert await ended(await speaking.connect(sent)) == b""


async def test_a_head_that_drips_in_has_no_longer_than_one_that_stands_still():
    async with server(head=0.2) as speaking, waiting_for("the end of a dripping connection"):
        reader, writer = await speaking.connect(b"GET / HTTP/1.1\r\n")
        ending = asyncio.create_task(ended((reader, writer)))
        while not ending.done():
            writer.write(b"x-a: b\r\n")
            await asyncio.wait({ending}, timeout=0.05)
        assert b"200 OK" not in ending.result()


async def test_a_body_that_does_not_come_ends_its_connection():
    head = b"POST /take HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n1234"
    async with server(body=0.2) as speaking, waiting_for("the end of a connection"):
        assert await ended(await speaking.connect(head)) == b""


async def test_a_client_that_does_not_read_is_let_go():
    async with server(reading=0.2) as speaking:
        reader, writer = await speaking.connect(b"GET /much HTTP/1.1\r\nhost: here\r\n\r\n")

        async def is_reset() -> bool:
            writer.write(b"\r\n")
            return writer.transport.is_closing()

        # The reader takes in what fits into its buffer, and no more until it is read from.
        await until(is_reset, bool, "the reset of a connection that nobody reads from")
        assert len(await ended((reader, writer))) < LARGE


async def test_a_client_that_reads_slowly_gets_its_whole_answer(monkeypatch: pytest.MonkeyPatch):
    loop, later = asyncio.get_running_loop(), 0.0
    now = loop.time
    async with server(reading=60.0) as speaking:
        reader, _ = await speaking.connect(b"GET /much HTTP/1.1\r\nhost: here\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda: now() + later)
            for _ in range(4):
                await reader.readexactly(LARGE // 4)
                later += 40.0  # the next look at the connections is due
                await asyncio.sleep(0)
                await asyncio.sleep(0)


async def test_the_oldest_that_waits_gives_way_to_a_new_one():
    async with server(most=3) as speaking, waiting_for("four connections"):
        oldest, *others = [await speaking.connect() for _ in range(3)]
        assert b"200 OK" in await speaking.ask()
        assert await ended(oldest) == b""
        for reader, writer in others[1:]:
            writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")


async def test_a_client_whose_request_is_unread_yet_does_not_give_way(
    monkeypatch: pytest.MonkeyPatch,
):
    made = _Connection.connection_made
    asks = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
    async with server(most=2) as speaking, waiting_for("three connections"):
        oldest, other = [await speaking.connect() for _ in range(2)]
        for reader, writer in (oldest, other):
            writer.write(asks)
            await reader.readuntil(b"hello")

        def after_a_request(self, transport):
            # The server reads no socket between accepting a connection and this call.
            oldest[1].write(asks)
            made(self, transport)

        monkeypatch.setattr(_Connection, "connection_made", after_a_request)
        await speaking.connect()
        assert b"200 OK" in await oldest[0].readuntil(b"hello")
        assert await ended(other) == b""


async def test_everybody_is_answered_beside_a_crowd_of_half_open_connections():
    heads = [b"", b"GET / HT", b"POST /take HTTP/1.1\r\nhost: here\r\ncontent-length: 99\r\n\r\n1"]
    async with server() as speaking, waiting_for("answers in a crowd"):
        for number in range(20 * MOST):
            await speaking.connect(heads[number % len(heads)])
            if number % MOST == 0:
                assert b"200 OK" in await speaking.ask()


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nhost: here\r\nx-large: " + b"x" * (2 * HEAD_BYTES),
        b"GET / HTTP/1.1\r\nhost: here\r\nx-large: " + b"x" * HEAD_BYTES + b"\r\n\r\n",
        b"GET /?a=\x01 HTTP/1.1\r\nhost: here\r\n\r\n",
        b"no request at all\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n" * 100,
    ],
    ids=[
        "too large",
        "too large, and whole",
        "a control character",
        "no request",
        "a hundred at once",
    ],
)
async def test_what_is_no_request_is_answered_with_400(head: bytes):
    async with server() as speaking, waiting_for("an answer"):
        answer = await ended(await speaking.connect(head))
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_trailer_without_an_end_is_answered_with_400():
    head = b"POST /take HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: "
    async with server() as speaking, waiting_for("an answer"):
        reader, writer = await speaking.connect(head)
        ending = asyncio.create_task(ended((reader, writer)))
        while not ending.done():
            writer.write(b"x" * 4096)
            await asyncio.wait({ending}, timeout=0.05)
        assert ending.result()[:13] in (b"", b"HTTP/1.1 400 ")


async def test_a_mistake_in_a_body_whose_answer_has_begun_ends_the_connection():
    begun = b"POST /early HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"
    async with server() as speaking, waiting_for("the end of a connection"):
        reader, writer = await speaking.connect(begun)
        assert b"200 OK" in await reader.readuntil(b"begun\r\n")
        writer.write(b"no chunk\r\n")
        await ended((reader, writer))
        assert b"200 OK" in await speaking.ask()


def test_connections_leave_files_for_everything_else(monkeypatch: pytest.MonkeyPatch):
    resource = pytest.importorskip("resource")
    for files, most in ((20_000, MOST_CONNECTIONS), (400, 200)):
        monkeypatch.setattr(resource, "getrlimit", lambda _which, files=files: (files, files))
        assert most_connections() == most
