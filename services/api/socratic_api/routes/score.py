"""`/api/score`: scores a text, or a batch of them, without a model.

A body of 2 MB takes a second to score, and its answer has ten times its size. So a large body is
scored in a thread, a piece at a time, and a piece of its answer is sent before the next one is
scored. A small body takes less time than a thread would: it is scored on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, TypeVar, TypeVarTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from socratic_api.answers.ready_bytes import JSON
from socratic_api.endpoints import ApiEndpoint
from socratic_api.http.bodies import BODY_LIMIT, is_at_most, read_body, require_json
from socratic_api.http.problems import RETRY_SECONDS
from socratic_api.score_shapes import ScoreOrBatch, ScoreOrBatchAnswer
from socratic_api.scoring import Item, batch_answer, batch_answers, items_in, one_answer

SMALL_BODY: Final = 16 * 1024
"""The most bytes of a small body."""

MOST_WAITING: Final = 64
"""The most bodies, small and large ones each, that wait for their turn; others are refused."""

LARGE_AT_ONCE: Final = 8
"""The most large bodies held at once, from their first byte to the last byte of their answer."""

LONGEST_WAIT: Final = 30.0
"""Seconds that a body waits for others: the server ends a connection that waits longer unread."""

PIECE: Final = 8
"""Items of a large batch that are scored in one turn."""

Given = TypeVarTuple("Given")
Result = TypeVar("Result")


def _busy() -> HTTPException:
    headers = {"Retry-After": RETRY_SECONDS, "Connection": "close"}
    return HTTPException(503, "too many texts wait to be scored; try again soon", headers)


class _Queue:
    """Bodies that are scored one after the other."""

    def __init__(self, held: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(held)
        self._free = held + waiting
        self._turn = asyncio.Lock()
        # A lock would be free once a client left, and its thread would still work.
        self._thread = ThreadPoolExecutor(1, "scoring")

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place while the context is open. Raises HTTPException 503 if too many wait."""
        if not self._free:
            raise _busy()
        self._free -= 1
        try:
            try:
                async with asyncio.timeout(LONGEST_WAIT):
                    await self._room.acquire()
            except TimeoutError:
                raise _busy() from None
            try:
                yield
            finally:
                self._room.release()
        finally:
            self._free += 1

    async def turn(self, work: Callable[[*Given], Result], *args: *Given) -> Result:
        """Work in a thread, after those that came before."""
        # Sixteen answers at once took 836 MB.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work, *args)

    async def short_turn(self, work: Callable[[bytes], Result], body: bytes) -> Result:
        """Work for milliseconds on the event loop, once in each of its rounds."""
        async with self._turn:
            await asyncio.sleep(0)
            return work(body)


class _Scores(Response):
    """The answer to a body: its place is free once the answer is sent, or given up."""

    def __init__(self, request: Request, queue: _Queue, *, small: bool) -> None:
        super().__init__(media_type=JSON)
        self._request, self._queue, self._small = request, queue, small

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A small body holds no place before it is whole: connections that send none would take all.
        small = await read_body(self._request) if self._small else None
        async with self._queue.place():
            body = await read_body(self._request) if small is None else small
            answer = await self._answer(body)
            await answer(scope, receive, send)

    async def _answer(self, body: bytes) -> Response:
        if self._small:
            return Response(await self._queue.short_turn(_whole, body), media_type=JSON)
        items = await self._queue.turn(items_in, body)
        if isinstance(items, list):
            return StreamingResponse(self._pieces(items), media_type=JSON)
        return Response(await self._queue.turn(one_answer, items), media_type=JSON)

    async def _pieces(self, items: list[Item]) -> AsyncIterator[bytes]:
        yield b'{"scores":['
        for first in range(0, len(items), PIECE):
            piece = await self._queue.turn(batch_answers, items[first : first + PIECE], first)
            yield b",%b" % piece if first else piece
        yield b"]}"


def _whole(body: bytes) -> bytes:
    items = items_in(body)
    return batch_answer(items) if isinstance(items, list) else one_answer(items)


def endpoints() -> list[ApiEndpoint]:
    """Return the endpoint of scoring; it stores nothing and calls no model."""
    small, large = _Queue(MOST_WAITING, 0), _Queue(LARGE_AT_ONCE, MOST_WAITING)

    async def score_texts(request: Request) -> Response:
        require_json(request)
        is_small = is_at_most(request, SMALL_BODY)
        return _Scores(request, small if is_small else large, small=is_small)

    return [
        ApiEndpoint(
            "/api/score",
            score_texts,
            "Score a tutor's response, or up to 1,000 of them",
            ScoreOrBatchAnswer,
            method="POST",
            description='`{"text": …}` gives one score; `{"items": [{"text": …}, …]}` gives '
            '`{"scores": […]}` in the same order. A bad item has an `error` in its place. '
            "A record of the predecessor without a text gives its scores on 0.0 to 1.0. "
            "Nothing is stored, and no model is called. Where the service has keys, it takes one: "
            "`Authorization: Bearer KEY`.",
            accepts=ScoreOrBatch,
            problems={
                401: "The key is missing or not known",
                403: "A page of another site asked",
                408: "The body did not arrive in time",
                413: f"The body is larger than {BODY_LIMIT:,} bytes",
                415: "The body is not said to be JSON",
                422: "The body is not what can be scored; `detail` names the place",
                503: "Too many texts wait to be scored",
            },
        )
    ]
