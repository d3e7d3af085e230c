"""Opening a client for a model that is reached over HTTP, with what its provider adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import MissingExtra
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_runner.models.http.base_urls import base_url, is_own, origin
from socratic_runner.models.http.failures import Failures
from socratic_runner.models.http.keys import Key, read_key
from socratic_runner.models.http.reading import Reading

if TYPE_CHECKING:
    from socratic_runner.models.http.connection import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is reached, and with which key."""

    url: str
    """Its base URL, without a slash at its end."""

    key_variable: str | None
    """The environment variable that holds the key; None: no key is sent."""


def place(
    model: TutorModel, known_url: str | None, key_variable: str | None, api_key_env: str | None
) -> Place:
    """Where `model` is reached; `known_url` and `key_variable` are its provider's usual ones.

    The usual key goes only to the usual address: whoever names another one has to name the key for
    it too. Raises InvalidInput for a wrong base_url.
    """
    url = base_url(model, known_url)
    usual = None if is_own(model, known_url) else key_variable
    return Place(url, api_key_env or usual)


def access(model: TutorModel, where: Place) -> Key | None:
    """The key for `model`. Raises MissingExtra and MissingCredential."""
    if find_spec("aiohttp") is None:
        raise MissingExtra(
            f"model {model.id}: models over HTTP need aiohttp, which is not installed; run: "
            "pip install 'socratic-ai-bench-runner[http]'"
        )
    return None if where.key_variable is None else read_key(model, where.key_variable)


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


def open_connection(model: TutorModel, where: Place, wire: Wire) -> ModelClient:
    """A client for `model`; it connects when it is first asked. Raises what `access` raises."""
    key = access(model, where)
    # Imported only now: it needs aiohttp.
    from socratic_runner.models.http.connection import Connection  # noqa: PLC0415

    failures = Failures(f"{model.provider} at {origin(where.url)}", key)
    url = f"{where.url}{wire.path}"
    connection = Connection(url, wire.headers(key), model.limits, failures, streamed=wire.streamed)
    return HttpClient(connection, wire, failures)


class HttpClient:
    """Speaks to one model over HTTP. Calls are made at once, as many as are asked for."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(self, connection: Connection, wire: Wire, failures: Failures) -> None:
        self._connection = connection
        self._wire = wire
        self._failures = failures

    async def ask(self, question: Question) -> Reply:
        """The model's reply, of one call."""
        reading = self._wire.reading(self._failures, streamed=self._wire.streamed)
        await self._connection.post(self._wire.body(question), reading)
        return reading.reply()

    async def close(self) -> None:
        """Close its connections; calls that are running fail."""
        await self._connection.close()
