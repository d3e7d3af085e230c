"""A server that sends exactly the bytes of a test."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """A client's request."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RawServer:
    """The address, and the received requests."""

    address: str
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection."""


Answering = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]
"""Answers a request. The connection is kept until the client closes it, or this closes it."""


async def read_request(reader: asyncio.StreamReader) -> Request:
    """The next request. Raises IncompleteReadError where there is none."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    originals = dict(line.split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(head[0], {name.lower(): text for name, text in originals.items()}, body)


@asynccontextmanager
async def serving(
    answer: Answering, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    """A server on the loopback address that answers each request in this way, over TLS if asked.

    A test may reserve `port`; the server then shares it with the socket that holds it.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    request = await read_request(reader)
                    server.requests.append(request)
                    await answer(request, writer)
                    await writer.drain()
            server.gone.set()
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(converse(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(
        connected, "127.0.0.1", port, reuse_port=bool(port) or None, ssl=tls
    )
    scheme = "https" if tls else "http"
    server = RawServer(f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    async with listener:
        yield server
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def response(status: str, body: bytes, *headers: str) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
"""The head of a stream that ends with its connection."""


def chunk(text: str, finish_reason: str | None = None) -> bytes:
    """One event of OpenAI's stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def completion(text: str, **fields: Any) -> bytes:
    """A whole reply of OpenAI's."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], **fields}).encode()
