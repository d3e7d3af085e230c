"""A function that an HTTP API calls: its event becomes a request to an ASGI application.

It reads version 2.0 of the payload. An answer is whole: an HTTP API streams none.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope

from socratic_bench.hosting.functions.environment import Environment, LambdaContext, LambdaEvent

LARGEST_TEXT: Final = 500_000
"""Bytes of a text that is given as text. Lambda takes 6 MB of JSON, in which each quotation mark
takes two bytes and a letter beyond ASCII six; base64 takes four for three."""

_TEXT: Final = ("text/", "application/json", "application/problem+json", "image/svg+xml")


@dataclass(slots=True)
class _Answer:
    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)


class HttpFunction:
    """Answers the requests of an HTTP API in one execution environment."""

    def __init__(self, environment: Environment[ASGIApp], headers: Mapping[str, str]) -> None:
        """Every answer has `headers` besides its own."""
        self._environment = environment
        self._headers = headers

    def __call__(self, event: LambdaEvent, context: LambdaContext) -> dict[str, Any]:
        """Answer one request."""
        return self._environment.run(context, partial(self._answer, event))

    async def _answer(self, event: LambdaEvent, app: ASGIApp) -> dict[str, Any]:
        answer = _Answer()
        unread = [_body_of(event)]

        async def receive() -> Message:
            if not unread:
                # A streamed answer listens for a client that leaves; that of a function stays.
                await asyncio.get_running_loop().create_future()
            return {"type": "http.request", "body": unread.pop(), "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in message.get("headers", ())
                ]
            else:
                answer.body += message.get("body", b"")

        await app(_scope_of(event), receive, send)
        return _as_payload(answer, self._headers)


def _scope_of(event: LambdaEvent) -> Scope:
    request = event["requestContext"]
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in event.get("headers", {}).items()
    ]
    if cookies := event.get("cookies"):
        headers.append((b"cookie", "; ".join(cookies).encode("latin-1")))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request["http"]["method"],
        "scheme": "https",
        "path": unquote(event["rawPath"]),
        "raw_path": event["rawPath"].encode(),
        "query_string": event.get("rawQueryString", "").encode(),
        "root_path": "",
        "headers": headers,
        "client": (request["http"].get("sourceIp", ""), 0),
        # The gateway answers to this name alone; so it is the address that was called.
        "server": (request.get("domainName", ""), 443),
    }


def _body_of(event: LambdaEvent) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _as_payload(answer: _Answer, headers: Mapping[str, str]) -> dict[str, Any]:
    cookies = [value for name, value in answer.headers if name == "set-cookie"]
    joined: dict[str, str] = dict(headers)
    for name, value in answer.headers:
        if name != "set-cookie":
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    body = bytes(answer.body)
    is_text = (
        joined.get("content-type", "").startswith(_TEXT)
        and "content-encoding" not in joined
        and len(body) <= LARGEST_TEXT
    )
    return {
        "statusCode": answer.status,
        "headers": joined,
        "cookies": cookies,
        "body": body.decode() if is_text else base64.b64encode(body).decode(),
        "isBase64Encoded": not is_text,
    }
