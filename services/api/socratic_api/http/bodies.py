"""Reads request bodies within limits."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from socratic_api.answers.ready_bytes import JSON

BODY_LIMIT = 2 * 1024 * 1024
"""Bytes."""

_DEADLINE_SECONDS = 30.0


def require_json(request: Request) -> None:
    """Raise HTTPException 415 unless the request declares JSON.

    A browser asks first before a page of another site may send JSON; other types it may send
    unasked.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise HTTPException(415, f"content-type: must be {JSON}", {"Accept": JSON})


def is_at_most(request: Request, size: int) -> bool:
    """Return whether the body is known to have at most so many bytes."""
    declared = request.headers.get("content-length", "")
    return declared.isdecimal() and int(declared) <= size


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """Read the body of a request, counting while it arrives.

    Raises HTTPException 413 beyond `limit` bytes, 408 if it has not arrived in time, 400 if the
    client went away.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        detail = f"body: it has not arrived within {_DEADLINE_SECONDS:g} seconds; send it again"
        raise HTTPException(408, detail) from None
    except ClientDisconnect:
        raise HTTPException(400, "body: the client went away before it was complete") from None
    return bytes(body)


def _too_large(limit: int) -> HTTPException:
    detail = f"body: larger than {limit:,} bytes; send less at once"
    # The rest of the body stays unread, so the connection cannot carry another request.
    return HTTPException(413, detail, {"Connection": "close"})
