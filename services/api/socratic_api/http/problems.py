"""Errors as problem details (RFC 9457): JSON with the mistake, its place and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.http.headers import HEADERS
from socratic_bench.errors import (
    AmbiguousExperiment,
    BrokerError,
    ExperimentStopped,
    InvalidConfig,
    InvalidInput,
    SocraticBenchError,
    StoreError,
    UnknownExperiment,
    UnknownRun,
)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = "1"

log = structlog.get_logger(__name__)


class Conflict(SocraticBenchError):
    """The API, or the present state of an experiment, does not allow what was asked."""


class ConfigMistake(BaseModel):
    """One mistake of a configuration, and its place."""

    model_config = ConfigDict(frozen=True)

    place: str
    line: int | None
    """The line of the request's body, from 1; null where the place has none."""

    problem: str


class Problem(BaseModel):
    """What every error of this API looks like."""

    model_config = ConfigDict(frozen=True)

    type: str = "about:blank"
    title: str
    """What kind of problem it is: the status in words."""

    status: int
    detail: str
    """What is wrong, where, and what to do."""

    mistakes: Annotated[tuple[ConfigMistake, ...], Field(exclude_if=lambda each: not each)] = ()
    """Every mistake of a configuration; absent from other problems."""

    @classmethod
    def of(cls, status: int, detail: str) -> Problem:
        return cls(title=HTTPStatus(status).phrase, status=status, detail=detail)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    return Response(
        to_json(Problem.of(status, detail)), status, headers=headers, media_type=MEDIA_TYPE
    )


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer 404, 405 and other errors of the framework."""
    if not isinstance(error, HTTPException):
        raise error
    details = {
        404: f"{request.url.path}: no such address; /openapi.json lists the addresses",
        405: f"{request.url.path} does not take {request.method}; see the Allow header",
    }
    return problem(error.status_code, details.get(error.status_code, error.detail), error.headers)


async def on_invalid_input(_request: Request, error: Exception) -> Response:
    """Answer a client's mistake, in the error's own words."""
    if isinstance(error, InvalidConfig):
        return _config_problem(error)
    if isinstance(error, AmbiguousExperiment):
        return problem(400, str(error))
    return problem(404 if isinstance(error, UnknownExperiment | UnknownRun) else 422, str(error))


def _config_problem(error: InvalidConfig) -> Response:
    """Return all mistakes; `detail` says the first one."""
    first, *others = error.mistakes
    more = f" (and {len(others)} more, in `mistakes`)" if others else ""
    found = Problem.of(422, f"{first}{more}").model_copy(
        update={
            "mistakes": tuple(
                ConfigMistake(place=each.place, line=each.line, problem=each.problem)
                for each in error.mistakes
            )
        }
    )
    return Response(to_json(found), 422, media_type=MEDIA_TYPE)


async def on_conflict(_request: Request, error: Exception) -> Response:
    """Answer that the present state does not allow the request, and what would."""
    return problem(409, str(error))


async def on_broker_error(_request: Request, error: Exception) -> Response:
    """Answer that the broker is unavailable. The reason goes to the log only."""
    log.error("the broker did not answer", error=str(error), kind=type(error).__name__)
    return problem(
        503,
        "the broker does not answer at the moment; the same request continues from here",
        {"Retry-After": RETRY_SECONDS},
    )


async def on_store_error(_request: Request, error: Exception) -> Response:
    """Answer that the store is unavailable. The reason goes to the log only: it may name hosts and
    paths.
    """
    log.error("the store did not answer", error=str(error), kind=type(error).__name__)
    return problem(
        503,
        "the store does not answer at the moment; try again soon",
        {"Retry-After": RETRY_SECONDS},
    )


async def on_unexpected_error(_request: Request, _error: Exception) -> Response:
    """Answer an unexpected error: the log has it in full, the client reads none of it.

    The framework calls this outside the application's middleware, so it adds the headers itself.
    """
    return problem(500, "the service failed; its log has the reason", HEADERS)


HANDLERS = {
    HTTPException: on_http_error,
    InvalidInput: on_invalid_input,
    Conflict: on_conflict,
    ExperimentStopped: on_conflict,
    BrokerError: on_broker_error,
    StoreError: on_store_error,
    TimeoutError: on_store_error,
    Exception: on_unexpected_error,
}
"""The handler for each exception."""
