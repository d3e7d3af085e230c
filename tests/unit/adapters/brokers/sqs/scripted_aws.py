"""An AWS on loopback that answers what a test tells it to, over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from socratic_bench.adapters.brokers.sqs.address import Address
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection

Answer = tuple[int, dict[str, Any]] | None
"""Status and body; None cuts the connection."""


class ScriptedAws:
    """Answers each request by `answer(operation, request)`, and keeps what it was asked."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], Answer]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        operation = request.headers["X-Amz-Target"].partition(".")[2]
        asked = json.loads(await request.read())
        self.asked.append((operation, asked))
        answer = self._answer(operation, asked)
        if answer is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status, body = answer
        return web.Response(
            status=status, text=json.dumps(body), content_type="application/x-amz-json-1.0"
        )


def refused(code: str, status: int = 400) -> Answer:
    """An error of SQS."""
    return status, {"__type": f"com.amazonaws.sqs#{code}", "message": f"this is {code}"}


def all_taken(request: dict[str, Any]) -> Answer:
    """Every entry of a batch succeeded."""
    successful = [
        {"Id": each["Id"], "MessageId": "m", "MD5OfMessageBody": "0" * 32}
        for each in request["Entries"]
    ]
    return 200, {"Successful": successful, "Failed": []}


@asynccontextmanager
async def connected(aws: ScriptedAws) -> AsyncIterator[AwsConnection]:
    """A connection to it."""
    application = web.Application()
    application.router.add_post("/{tail:.*}", aws.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    connection = AwsConnection(Address("us-east-1", "unit", f"http://127.0.0.1:{port}", None))
    try:
        yield connection
    finally:
        await connection.close()
        await runner.cleanup()
