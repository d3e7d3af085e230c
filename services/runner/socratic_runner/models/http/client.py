"""Opening a client for a model that is reached over HTTP, with what its provider adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.extras import require_package
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_runner.models.access import Access
from socratic_runner.models.http.failures import (
    LONGEST_FOREIGN_MESSAGE,
    LONGEST_MESSAGE,
    Failures,
)
from socratic_runner.models.http.keys import Key, read_key
from socratic_runner.models.http.reading import Reading

if TYPE_CHECKING:
    from socratic_runner.models.http.connection import Connection


def require_key(model: TutorModel, access: Access) -> Key | None:
    """The key for `model`; None where it needs none. Raises MissingExtra and MissingCredential."""
    require_package(
        "aiohttp",
        needed_by=f"model {model.id}: a model over HTTP",
        extra="socratic-ai-bench-runner[http]",
    )
    return None if access.key is None else read_key(model, access.key)


@dataclass(frozen=True, slots=True)
class Wire:
    """How one provider is spoken to."""

    path: str
    """What is posted to, after the base URL."""

    headers: Callable[[Key | None], Mapping[str, str]]
    """The headers of every call."""

    body: Callable[[Question], Mapping[str, Any]]
    """What is posted to put a question."""

    reading: Callable[..., Reading]
    """What reads the reply to one call; made of its Failures, and of whether it is `streamed`."""

    streamed: bool
    """Whether replies are asked for piece by piece."""


def open_connection(model: TutorModel, access: Access, wire: Wire) -> ModelClient:
    """A client for `model`, which connects when it is first asked.

    Raises what `require_key` raises.
    """
    key, where = require_key(model, access), access.where
    if where is None:
        raise InvalidInput(f"model {model.id}: it is not known where it is; give it a base_url")
    # Imported only now: it needs aiohttp.
    from socratic_runner.models.http.connection import Connection  # noqa: PLC0415

    longest = LONGEST_MESSAGE if where.own else LONGEST_FOREIGN_MESSAGE
    failures = Failures(f"{model.provider} at {where.origin}", key, longest=longest)
    url = f"{where.url}{wire.path}"
    connection = Connection(url, wire.headers(key), model.limits, failures, streamed=wire.streamed)
    return HttpClient(connection, wire, failures, key)


class HttpClient:
    """Speaks to one model over HTTP. Calls are made at once, as many as are asked for."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(
        self, connection: Connection, wire: Wire, failures: Failures, key: Key | None
    ) -> None:
        self._connection = connection
        self._wire = wire
        self._failures = failures
        self._key = key

    async def ask(self, question: Question) -> Reply:
        """The model's reply, of one call."""
        reading = self._wire.reading(self._failures, streamed=self._wire.streamed)
        await self._connection.post(self._wire.body(question), reading)
        reply = reading.reply()
        if self._key is None or not self._key.is_secret:
            return reply
        return replace(reply, text=self._key.hide_in(reply.text))

    async def close(self) -> None:
        """Close its connections; calls that are running fail."""
        await self._connection.close()
