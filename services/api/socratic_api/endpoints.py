"""Endpoints: each is a route with its description for OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from socratic_api.answers.ready_bytes import ReadyBody, wanted


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter in the query of an address."""

    name: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """One method of one path."""

    path: str
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    answer: type[BaseModel] | str
    """The model of a successful answer, or the media type of an answer other than JSON."""

    also: tuple[str, ...] = ()
    """The media types of other forms of the same answer, which a query selects."""

    method: str = "GET"
    status: int = 200
    """The status of a successful answer."""

    description: str = ""
    parameters: tuple[QueryParameter, ...] = ()
    accepts: type[BaseModel] | None = None
    """The model of the request's body."""

    problems: Mapping[int, str] = field(default_factory=dict)
    """The problems it answers with, by status."""

    ready: Callable[[], ReadyBody | None] | None = None
    """The cached answer to a request without a query, if there is one."""

    def route(self) -> Route:
        """Return the endpoint as a route of the application."""
        return Route(self.path, self.handler, methods=[self.method])


class QuickAnswers:
    """Middleware that sends ready bodies without a route, a request or a response object."""

    def __init__(self, app: ASGIApp, endpoints: Iterable[ApiEndpoint]) -> None:
        self._app = app
        self._known = {
            each.path: (each.ready, each.route()) for each in endpoints if each.ready is not None
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            found = self._known.get(scope["path"])
            if found is not None and (body := found[0]()) is not None:
                await _send(scope, send, body, found[1])
                return
        await self._app(scope, receive, send)


async def _send(scope: Scope, send: Send, ready: ReadyBody, route: Route) -> None:
    scope["route"] = route  # the key of the request counts
    status, headers, body = wanted(scope, ready)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
