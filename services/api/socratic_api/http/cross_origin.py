"""Cross-origin requests (CORS): pages of listed sites may read the answers and send requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

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
