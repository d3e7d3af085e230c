"""A gateway before DynamoDB that throttles, reports conflicts and loses answers, by chance."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
from aiohttp import web

API = "com.amazonaws.dynamodb.v20120810#"
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


class FaultyGateway:
    """Forwards requests to a server; a part of them has a fault of its kind."""

    def __init__(self, server: str, part: float, seed: int) -> None:
        self._server = server
        self._part = part
        self._chance = random.Random(seed)
        self._session = aiohttp.ClientSession(auto_decompress=False)
        self.url = ""
        self.faults: Counter[str] = Counter()

    async def close(self) -> None:
        await self._session.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        operation = request.headers.get("X-Amz-Target", "").partition(".")[2]
        body = await request.read()
        # Only the services that speak JSON name the operation, and have errors of this form.
        if operation and self._chance.random() < self._part:
            fault = self._chance.choice(["throttled", "conflict", "lost before", "lost after"])
            self.faults[fault] += 1
            if refusal := self._refusal(fault, operation, body):
                return web.json_response(refusal, status=400)
            if fault == "lost after":
                await self._forward(request, body)
            if fault.startswith("lost"):
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
        return await self._forward(request, body)

    def _refusal(self, fault: str, operation: str, body: bytes) -> dict[str, object] | None:
        """What AWS answers in place of doing it."""
        if fault == "throttled":
            return {"__type": f"{API}ThrottlingException", "message": "Rate exceeded"}
        if fault == "conflict" and operation in WRITES:
            return {"__type": f"{API}TransactionConflictException", "message": "conflict"}
        if fault == "conflict" and operation == "TransactWriteItems":
            actions = len(json.loads(body)["TransactItems"])
            reasons: list[dict[str, str]] = [{"Code": "None"}] * (actions - 1)
            reasons.append({"Code": "TransactionConflict", "Message": "conflict"})
            return {
                "__type": f"{API}TransactionCanceledException",
                "message": "Transaction cancelled",
                "CancellationReasons": reasons,
            }
        return None

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        url = f"{self._server}{request.path_qs}"
        sent = {name: text for name, text in request.headers.items() if name != "Content-Length"}
        async with self._session.request(request.method, url, data=body, headers=sent) as answer:
            content = await answer.read()
            headers = {"Content-Type": answer.headers.get("Content-Type", "text/plain")}
            return web.Response(body=content, status=answer.status, headers=headers)


class ThrottlingGateway(FaultyGateway):
    """Throttles every request to DynamoDB while it is told to."""

    def __init__(self, server: str) -> None:
        super().__init__(server, part=0, seed=0)
        self.throttles = False
        self.refused = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if not self.throttles:
            return await super().handle(request)
        self.refused += 1
        return web.json_response(self._refusal("throttled", "", b""), status=400)

    async def refusals(self) -> int:
        """How many requests it has throttled."""
        return self.refused


Gateway = TypeVar("Gateway", bound=FaultyGateway)


@asynccontextmanager
async def serving(gateway: Gateway) -> AsyncIterator[Gateway]:
    """A gateway that listens; its address is in `url`."""
    application = web.Application(client_max_size=32 * 1024**2)
    application.router.add_route("*", "/{path:.*}", gateway.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    gateway.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield gateway
    finally:
        await runner.cleanup()
        await gateway.close()


@asynccontextmanager
async def faulty_gateway(server: str, part: float, seed: int) -> AsyncIterator[FaultyGateway]:
    """A gateway for these faults, which listens."""
    async with serving(FaultyGateway(server, part, seed)) as gateway:
        yield gateway
