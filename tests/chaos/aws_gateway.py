"""A gateway before AWS that doubles messages, throttles, loses answers, cuts and goes away."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.integration.dynamodb.faulty_gateway import FaultyGateway, serving

SEND = "SendMessageBatch"
POLL = "ReceiveMessage"

LATEST = 3
"""Seconds by which the second copy of a message may be late."""


class AwsGateway(FaultyGateway):
    """Forwards requests to an emulator; every message that is sent arrives twice, out of order."""

    def __init__(self, server: str, part: float, seed: int) -> None:
        super().__init__(server, part, seed)
        self.is_away = False
        """Whether every connection is cut before its request is read."""

        self._order = random.Random(seed)
        self._sent: set[int] = set()
        self._active: dict[asyncio.Task[None], web.Request] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._active[task] = request
        try:
            if self.is_away:
                _cut(request)
                return web.Response()
            answer = await super().handle(request)
            if _operation(request) == SEND:
                await self._send_again(request)
        except aiohttp.ClientError:
            _cut(request)
            return web.Response()
        else:
            return answer
        finally:
            del self._active[task]

    def cut(self) -> None:
        """Cut all connections; AWS still does what was asked of it."""
        for request in self._active.values():
            _cut(request)

    async def settled(self) -> None:
        """Wait until AWS has done all that was asked of it so far."""
        asked = [task for task, each in self._active.items() if _operation(each) != POLL]
        if asked:
            await asyncio.wait(asked)

    async def _send_again(self, request: web.Request) -> None:
        """Send messages a second time that were never sent before."""
        sent = json.loads(await request.read())
        fresh = [each for each in sent["Entries"] if hash(each["MessageBody"]) not in self._sent]
        self._sent |= {hash(each["MessageBody"]) for each in fresh}
        self._order.shuffle(fresh)
        late = [{**each, "DelaySeconds": self._order.randint(0, LATEST)} for each in fresh]
        if late:
            self.faults["copied"] += len(late)
            await self._forward(request, json.dumps({**sent, "Entries": late}).encode())


def _operation(request: web.Request) -> str:
    return request.headers.get("X-Amz-Target", "").rpartition(".")[2]


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


@asynccontextmanager
async def aws_gateway(server: str, part: float, seed: int) -> AsyncIterator[AwsGateway]:
    """A gateway that listens; its address is in `url`."""
    async with serving(AwsGateway(server, part, seed)) as gateway:
        yield gateway
