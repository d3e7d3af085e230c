"""Headers that restrict a browser's use of the answers, and that let listed sites read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class SecurityHeaders:
    """Adds the headers to every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW]
            await send(message)

        await self._app(scope, receive, send_with_headers)


_METHODS: Final = ("GET", "HEAD", "POST", "PATCH", "DELETE")
_REQUEST_HEADERS: Final = ("authorization", "content-type", "if-none-match", "last-event-id")
_ANSWER_HEADERS: Final = ("etag", "content-disposition", "retry-after")
_PREFLIGHT_SECONDS: Final = 600


def cross_origin(origins: Sequence[str]) -> list[Middleware]:
    """Return the middleware that lets pages of these origins in; none where no origin is listed."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_REQUEST_HEADERS,
            expose_headers=_ANSWER_HEADERS,
            max_age=_PREFLIGHT_SECONDS,
        )
    ]
