"""A function that is frozen after each answer: none of its work may wait for the next one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from socratic_api.answers import ready_bytes
from socratic_api.bootstrap import build_app
from socratic_api.capabilities import Capabilities
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.hosting.functions.environment import Environment
from socratic_bench.hosting.functions.http_function import HttpFunction
from tests.contract.store.facts import an_experiment

ROUNDS = 10
"""Rounds of the event loop that the store takes: a request elsewhere waits none of them here."""


class Invocation:
    """What Lambda tells of an invocation."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def asking(path: str) -> dict[str, Any]:
    return {
        "rawPath": path,
        "headers": {"host": "127.0.0.1"},
        "requestContext": {"http": {"method": "GET"}, "domainName": "127.0.0.1"},
    }


def test_a_request_waits_for_its_new_body_and_leaves_no_work_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ready_bytes, "_STALE_AFTER", 0.0)
    monkeypatch.setattr(ready_bytes, "_FRESH_FOR", 0)  # however long the machine took to make it
    left: list[set[asyncio.Task[Any]]] = []
    loops: list[asyncio.AbstractEventLoop] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[ASGIApp]:
        loops.append(asyncio.get_running_loop())
        store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
        await store.prepare()
        revision = store.revision

        async def slow_revision() -> str:
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
            return await revision()

        capabilities = Capabilities(may_stream=False, outlives_answers=False)
        app = build_app(store, ApiSettings(freshness_ms=0), capabilities=capabilities)

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            before = asyncio.all_tasks()
            await app(scope, receive, send)
            left.append(asyncio.all_tasks() - before)
            # The next request finds another revision, and a store that takes long to tell it.
            await store.register(an_experiment(occasion=f"week {len(left)}"))
            store.revision = slow_revision  # type: ignore[method-assign]

        yield watched
        await store.close()

    environment = Environment(opened)
    function = HttpFunction(environment, headers={})
    try:
        answers = [function(asking("/api/experiments"), Invocation()) for _ in range(2)]
    finally:
        environment.run(Invocation(), lambda _: environment.reopen())
        loops[0].close()

    shown = [len(json.loads(each["body"])["experiments"]) for each in answers]
    assert shown == [0, 1]
    assert left == [set(), set()]


def test_a_streamed_answer_is_collected_while_the_client_stays():
    """Starlette listens for a client that leaves for as long as it streams."""

    async def streamed(scope: Any, receive: Any, send: Any) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"What might "
            await asyncio.sleep(0)
            yield b"you consider?"

        await StreamingResponse(pieces(), media_type="text/plain")(scope, receive, send)

    @asynccontextmanager
    async def opened() -> AsyncIterator[ASGIApp]:
        loops.append(asyncio.get_running_loop())
        yield streamed

    loops: list[asyncio.AbstractEventLoop] = []
    environment = Environment(opened)
    answer = HttpFunction(environment, {})(asking("/streamed"), Invocation())
    assert answer["body"] == "What might you consider?"
    [loop] = loops
    loop.run_until_complete(environment.reopen())
    loop.close()
