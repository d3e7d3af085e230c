"""A server that answers as Bedrock, byte by byte, as a test prescribes.

It covers what no imitation of Bedrock offers: faults, reasoning, credentials in an answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import ModelClient, Reply
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.endpoints import Endpoint, Endpoints
from socratic_bench.testing.samples import a_question
from socratic_runner.models.registry import open_client
from tests.waiting import PATIENCE, waiting_for

DEADLINE = PATIENCE
SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED42",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+key=1234567890",
    "AWS_SESSION_TOKEN": "planted//session==token",
}
"""The environment that a test asks in."""

_STREAM = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path, credentials: dict[str, str]) -> None:
    """Use these credentials, and hide the machine's own AWS configuration."""
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name, value in credentials.items():
        monkeypatch.setenv(name, value)


Answer = Callable[["Wire", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Wire:
    """A server that answers every request in one way."""

    answer: Answer
    waits: bool = False
    """Whether it keeps the connection after its answer, until the client closes it."""

    address: str = ""
    heads: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the test is over."""

    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection, if it `waits` for that."""

    _arrivals: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _serving: set[asyncio.Task[object]] = field(default_factory=set)

    async def asked(self, times: int = 1) -> None:
        """Wait for so many requests."""
        async with waiting_for(f"{times} requests"):
            for _ in range(times):
                await self._arrivals.acquire()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:-1])
            body = await reader.readexactly(int(fields["content-length"]))
            self.heads.append(head)
            self.bodies.append(json.loads(body))
            self._arrivals.release()
            await self.answer(self, writer)
            if self.waits:
                await reader.read()
                self.hung_up.set()
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def finish(self) -> None:
        self.ended.set()
        await asyncio.gather(*self._serving)


@asynccontextmanager
async def answering(answer: Answer, *, waits: bool = False) -> AsyncIterator[Wire]:
    """A server for the time of a test."""
    wire = Wire(answer, waits)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield wire
        await wire.finish()


@asynccontextmanager
async def opened(
    address: str | None, *, limits: Limits | None = None, **options: Any
) -> AsyncIterator[ModelClient]:
    """A client that asks there; None: at AWS's own address."""
    model = TutorModel(
        id="bedrock/anthropic.claude-v9:0",
        base_url=address,
        options=options,
        limits=limits or Limits(),
    )
    listed = [] if address is None else [Endpoint("imitation", origin(address), aws=True)]
    client = open_client(model, endpoints=Endpoints(tuple(listed)))
    try:
        async with waiting_for("the model"):
            yield client
    finally:
        await client.close()


async def reply_to(answer: Answer, **options: Any) -> Reply:
    """The reply that a client makes of an answer."""
    async with answering(answer) as wire, opened(wire.address, **options) as client:
        return await client.ask(a_question())


async def failure_of(
    answer: Answer, *, limits: Limits | None = None, **options: Any
) -> ModelCallFailed:
    """The failure that a client makes of an answer."""
    async with (
        answering(answer) as wire,
        opened(wire.address, limits=limits, **options) as client,
    ):
        with pytest.raises(ModelCallFailed) as failure:
            await client.ask(a_question())
    return failure.value


def event(name: str, payload: dict[str, Any], *, message: str = "event") -> bytes:
    """One message of Amazon's event stream."""
    headers = b""
    for key, value in (
        (":message-type", message),
        (f":{message}-type", name),
        (":content-type", "application/json"),
    ):
        headers += struct.pack("!B", len(key)) + key.encode()
        headers += struct.pack("!BH", 7, len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    data = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return data + struct.pack("!I", zlib.crc32(data))


START = event("messageStart", {"role": "assistant"})


def delta(**block: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": 0, "delta": block})


def stop(reason: str = "end_turn") -> bytes:
    return event("messageStop", {"stopReason": reason})


def metadata(**more: Any) -> bytes:
    usage = {"inputTokens": 30, "outputTokens": 20, "totalTokens": 50, **more.pop("usage", {})}
    return event("metadata", {"usage": usage, "metrics": {"latencyMs": 5}, **more})


def sends(*pieces: bytes, whole: bool = True, headers: dict[str, str] | None = None) -> Answer:
    """A stream of these pieces, which breaks off after them unless it is whole."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())

    async def answer(_: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{_STREAM}{fields}Transfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            await send_chunk(writer, piece)
        if whole:
            writer.write(b"0\r\n\r\n")

    return answer


async def send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A further piece of a stream."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def responds(
    status: int, body: dict[str, Any] | str, headers: dict[str, str] | None = None
) -> Answer:
    """A whole response. {head} in it is the head of the request."""

    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        data = text.replace("{head}", json.dumps(wire.heads[-1])[1:-1]).encode()
        fields = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        writer.write(f"HTTP/1.1 {status} Something\r\n".encode())
        for name, value in {**fields, **(headers or {})}.items():
            writer.write(f"{name}: {value}\r\n".encode())
        writer.write(b"\r\n" + data)

    return answer


async def hangs(wire: Wire, _: asyncio.StreamWriter) -> None:
    """Keep the connection open and send nothing."""
    await wire.ended.wait()
