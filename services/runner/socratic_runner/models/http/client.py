"""Opens HTTP clients of models, with the parts that a provider supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.plugins import require_package
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_runner.models.access import Access
from socratic_runner.models.http.failures import (
    LONGEST_FOREIGN_MESSAGE,
    LONGEST_MESSAGE,
    Failures,
)
from socratic_runner.models.http.keys import Key, read_key
from socratic_runner.models.http.reading import ReplyReading

if TYPE_CHECKING:
    from socratic_runner.models.http.connection import Connection


def require_key(model: TutorModel, access: Access) -> Key | None:
    """Return the key for `model`, if it needs one. Raises MissingExtra and MissingCredential."""
    require_package(
        "aiohttp",
        needed_by=f"model {model.id}: a model over HTTP",
        extra="socratic-ai-bench-runner[http]",
    )
    return None if access.key is None else read_key(model, access.key)


@dataclass(frozen=True, slots=True)
class Wire:
    """The wire format of one provider."""

    path: str
    """The path of a call, after the base URL."""

    headers: Callable[[Key | None], Mapping[str, str]]
    """Makes the headers of every call."""

    body: Callable[[Question], Mapping[str, Any]]
    """Makes the body of a call from a question."""

    reading: Callable[..., ReplyReading]
    """Makes the reading of one reply, from the Failures and from `streamed`."""

    streamed: bool
    """True if replies are streamed."""


def open_connection(model: TutorModel, access: Access, wire: Wire) -> ModelClient:
    """Return a client for `model`, which connects at its first call.

    Raises MissingExtra, MissingCredential, and InvalidInput for an unknown address.
    """
    key, where = require_key(model, access), access.where
    if where is None:
        raise InvalidInput(f"model {model.id}: its address is unknown; give it a base_url")
    # A late import: it needs aiohttp.
    from socratic_runner.models.http.connection import Connection  # noqa: PLC0415

    longest = LONGEST_MESSAGE if where.own else LONGEST_FOREIGN_MESSAGE
    failures = Failures(f"{model.provider} at {where.origin}", key, longest=longest)
    url = f"{where.url}{wire.path}"
    connection = Connection(url, wire.headers(key), model.limits, failures, streamed=wire.streamed)
    return HttpClient(connection, wire, failures, key)


class HttpClient:
    """Calls one model over HTTP. The limiter bounds its concurrent calls."""

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
        """Return the model's reply to one call."""
        reading = self._wire.reading(self._failures, streamed=self._wire.streamed)
        await self._connection.post(self._wire.body(question), reading)
        reply = reading.reply()
        if self._key is None or not self._key.is_secret:
            return reply
        return replace(reply, text=self._key.hide_in(reply.text))

    async def close(self) -> None:
        """Close its connections; calls in flight fail."""
        await self._connection.close()
