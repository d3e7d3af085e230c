"""`/api/dead-letters`: messages that no service could handle, and their redrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, make_ready, ready_response
from socratic_api.capabilities import Capabilities
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.http.bodies import read_body, require_json
from socratic_api.routes.query import whole_number
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.trouble import one_line
from socratic_bench.errors import BrokerUnavailable, InvalidInput
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.ports.broker import Broker, DeadLetter

BROKER_SECONDS: Final = 15.0
"""Seconds that the broker may take."""

_LISTED: Final = 20
_LISTED_LIMIT: Final = 100
_BODY_LIMIT: Final = 1_000

_QUEUES: Final = tuple(each.name for each in WORK_QUEUES)


class ShownDeadLetter(BaseModel):
    """A dead letter without its body, which may be large."""

    model_config = ConfigDict(frozen=True)

    id: str
    type: str
    group: str
    """The model, or another group of the queue."""

    attempts: int
    reason: str


class DeadLetterQueue(BaseModel):
    """The dead letters of one queue, the oldest first."""

    model_config = ConfigDict(frozen=True)

    queue: str
    waiting: int
    """The number of all its dead letters; a batch counts once."""

    letters: tuple[ShownDeadLetter, ...]


class DeadLetters(BaseModel):
    """The dead letters of all queues."""

    model_config = ConfigDict(frozen=True)

    queues: tuple[DeadLetterQueue, ...] | None
    """Null where the API has no broker: dead letters are unknown."""


class Redrive(BaseModel):
    """The body of a redrive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue: Annotated[str, Field(json_schema_extra={"enum": [*_QUEUES]})] | None = None
    """The queue whose dead letters go back; null: all queues."""

    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The most dead letters of each queue; null: all."""


class Redriven(BaseModel):
    """The dead letters that went back into their queues."""

    model_config = ConfigDict(frozen=True)

    put_back: dict[str, int]
    """Their number by queue."""


def endpoints(capabilities: Capabilities) -> list[ApiEndpoint]:
    """Return the endpoints of the dead letters."""

    async def list_dead_letters(request: Request) -> Response:
        limit = whole_number(request, "limit", default=_LISTED, low=1, high=_LISTED_LIMIT)
        queues = None
        if capabilities.broker is not None:
            queues = await _listed(capabilities.broker, limit)
        return ready_response(request, make_ready(to_json(DeadLetters(queues=queues)), JSON))

    async def redrive_dead_letters(request: Request) -> Response:
        require_json(request)
        wanted = _redrive_in(await read_body(request, _BODY_LIMIT))
        broker = capabilities.require_broker("dlq redrive")
        return Response(to_json(await _redrive(broker, wanted)), media_type=JSON)

    return [
        ApiEndpoint(
            "/api/dead-letters",
            list_dead_letters,
            "Messages that no service could handle, by queue, with their reasons",
            DeadLetters,
            description="`queues` is null where the API has no broker.",
            parameters=(
                QueryParameter(
                    "limit",
                    "How many of each queue to list.",
                    {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": _LISTED_LIMIT,
                        "default": _LISTED,
                    },
                ),
            ),
            problems={422: "`limit` is out of bounds", 503: "The broker does not answer"},
        ),
        ApiEndpoint(
            "/api/dead-letters/redrive",
            redrive_dead_letters,
            "Put dead letters back into their queues, where services handle them as new messages",
            Redriven,
            method="POST",
            accepts=Redrive,
            problems={
                401: "The key is missing or not known",
                403: "A page of another site asked",
                408: "The body did not arrive in time",
                409: "The API has no broker",
                413: f"The body is larger than {_BODY_LIMIT:,} bytes",
                415: "The body is not said to be JSON",
                422: "The body names no such queue, or a wrong number",
                503: "The broker does not answer",
            },
        ),
    ]


@asynccontextmanager
async def _deadline() -> AsyncIterator[None]:
    """Raise BrokerUnavailable once the broker takes too long."""
    try:
        async with asyncio.timeout(BROKER_SECONDS):
            yield
    except TimeoutError:
        silent = f"the broker was silent for {BROKER_SECONDS:g} seconds"
        raise BrokerUnavailable(silent) from None


async def _listed(broker: Broker, limit: int) -> tuple[DeadLetterQueue, ...]:
    async with _deadline():
        await broker.inspect(WORK_QUEUES)  # which creates nothing
        found = []
        for queue in WORK_QUEUES:
            waiting = await broker.dead_letter_depth(queue.name)
            letters = await broker.dead_letters(queue.name, limit) if waiting else ()
            found.append(
                DeadLetterQueue(
                    queue=queue.name, waiting=waiting, letters=tuple(map(_shown, letters[:limit]))
                )
            )
    return tuple(found)


async def _redrive(broker: Broker, wanted: Redrive) -> Redriven:
    queues = [each.name for each in WORK_QUEUES if wanted.queue in {None, each.name}]
    async with _deadline():
        await broker.declare(WORK_QUEUES, BROADCASTS)
        return Redriven(
            put_back={name: await broker.redrive(name, wanted.limit) for name in queues}
        )


def _shown(letter: DeadLetter) -> ShownDeadLetter:
    message = letter.message
    return ShownDeadLetter(
        id=message.id,
        type=message.type,
        group=message.group,
        attempts=letter.attempts,
        reason=one_line(letter.reason),
    )


def _redrive_in(body: bytes) -> Redrive:
    try:
        wanted = Redrive.model_validate_json(body)
    except ValidationError as error:
        problem = mistakes_in(error, Redrive, shows_values=False)
        raise InvalidInput(f"body: {problem}") from None
    if wanted.queue not in {None, *_QUEUES}:
        raise InvalidInput(f"queue: must be one of {', '.join(_QUEUES)}")
    return wanted
