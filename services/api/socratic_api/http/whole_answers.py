"""Whole answers, for a function: each is small and in time, or a problem that says what to do.

Lambda takes 6 MB of a function's answer, and an HTTP API waits for 30 seconds; beyond either, the
client would get an error without a reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from socratic_api.answers.ready_bytes import GZIP_FROM_BYTES, GZIP_LEVEL
from socratic_api.http.headers import SecurityHeaders
from socratic_api.http.problems import RETRY_SECONDS, problem

MOST_BYTES: Final = 4_500_000
"""Bytes of a body at most; as base64, Lambda's 6 MB."""

COMMAND: Final = "command"
"""What the state of a request calls the command that does the same."""


class WholeAnswers:
    """Collects each answer of an application before it sends the answer.

    It compresses what a client takes compressed, and ends the work of what grows too large.
    """

    def __init__(
        self, app: ASGIApp, seconds: Callable[[], float], most_bytes: int = MOST_BYTES
    ) -> None:
        """`seconds` returns how long the answer to the present request may take."""
        self._app = GZipMiddleware(app, GZIP_FROM_BYTES, GZIP_LEVEL)
        self._seconds = seconds
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # An endpoint may say there which command gives the answer.
        state = scope.setdefault("state", {})
        messages: list[Message] = []
        size = 0
        seconds = self._seconds()
        deadline = asyncio.timeout(seconds)

        async def collect(message: Message) -> None:
            nonlocal size
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self._most_bytes and not deadline.expired():
                deadline.reschedule(0)

        is_late = False
        try:
            async with deadline:
                await self._app(scope, receive, collect)
        except TimeoutError:
            if not deadline.expired():
                raise
            is_late = True
        command = f"or use the command, `{state.get(COMMAND, 'socratic-bench')}`"
        refusal = None
        if size > self._most_bytes:
            refusal = problem(
                422,
                f"the answer has more than {self._most_bytes:,} bytes, the most that this API "
                "sends: take it compressed (`Accept-Encoding: gzip`), ask for less, such as one "
                f"model or fewer with `limit`, {command}",
            )
        elif is_late:
            refusal = problem(
                503,
                f"the answer was not there after {seconds:.0f} seconds: ask for less, such as one "
                f"model or fewer with `limit`, try again soon, {command}",
                {"Retry-After": RETRY_SECONDS},
            )
        if refusal is not None:
            await SecurityHeaders(refusal)(scope, receive, send)
            return
        for message in messages:
            await send(message)
