"""Opens HTTP clients of models, with the parts that a provider supplies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.errors import FailureKind, InvalidInput, ModelCallFailed, ModelUnusable
from socratic_bench.plugins import require_package
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.base_urls import with_path
from socratic_bench.providers.built_in import HttpOptions
from socratic_bench.providers.endpoints import SETTING, KeySource
from socratic_runner.models.access import Access
from socratic_runner.models.http.diagnosis import Called
from socratic_runner.models.http.failures import (
    LONGEST_FOREIGN_MESSAGE,
    LONGEST_MESSAGE,
    Failures,
)
from socratic_runner.models.http.keys import Key, read_key
from socratic_runner.models.http.proxies import is_near
from socratic_runner.models.http.reading import ReplyReading, WholeBody

if TYPE_CHECKING:
    from socratic_runner.models.http.batches import HttpBatches
    from socratic_runner.models.http.connection import Connection


JSON: Final = "application/json"

Result = TypeVar("Result")


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
    """Makes the headers of every call; `call_headers` adds those of the options."""

    body: Callable[[Question], Mapping[str, Any]]
    """Makes the body of a call from a question."""

    reading: Callable[..., ReplyReading]
    """Makes the reading of one reply, from the Failures and from `streamed`."""

    streamed: bool
    """True if replies are streamed."""

    batches: Callable[[HttpClient], HttpBatches] | None = None
    """Makes the access to the provider's batches; None: calls go one by one."""


def call_headers(options: HttpOptions, usual: Mapping[str, str], key: Key | None) -> dict[str, str]:
    """Return the headers of a call: the usual ones of its key, or the options' header with it."""
    if key is None or options.key_header is None:
        return {**options.headers, **usual}
    return {**options.headers, options.key_header: key.reveal()}


def open_connection(model: TutorModel, access: Access, wire: Wire) -> ModelClient:
    """Return a client for `model`, which connects at its first call.

    Raises MissingExtra, MissingCredential, and InvalidInput for an unknown address.
    """
    client = HttpClient(model, access, wire)
    client.renew()
    return client


class HttpClient:
    """Calls one model over HTTP. The limiter bounds its concurrent calls."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(self, model: TutorModel, access: Access, wire: Wire) -> None:
        self._model = model
        self._access = access
        self._wire = wire
        self.loading_seconds = _loading_seconds(model, access)
        """Seconds that the first call may take; None once it ended, or for a service."""

        self.batches = None if wire.batches is None else wire.batches(self)
        """Access to the provider's batches, for a model whose calls go there."""

        self._keyed: Keyed | None = None
        self._earlier: list[Keyed] = []
        """Those of earlier keys: calls of theirs may be in flight."""

    def renew(self) -> Keyed:
        """Return the connection with the present key; a new one if the key has changed.

        Raises MissingExtra, MissingCredential, and InvalidInput for an unknown address.
        """
        key = require_key(self._model, self._access)
        if self._keyed is not None:
            if self._keyed.key is None or key is None or key.reveal() == self._keyed.key.reveal():
                return self._keyed
            self._earlier.append(self._keyed)
        self._keyed = _connected(self._model, self._access, self._wire, key)
        return self._keyed

    async def ask(self, question: Question) -> Reply:
        """Return the model's reply to one call; of a second one where the key was refused and has
        changed since.
        """
        return await self._with_key(partial(self._ask, question))

    async def exchange(
        self, method: str, path: str, data: bytes | None = None, content_type: str = JSON
    ) -> bytes:
        """Return the body of an answer, for a path after the base URL with a query of its own.

        Raises ModelCallFailed, and ModelUnusable for a refusal that every call would get.
        """
        return await self._with_key(partial(self._exchange, method, path, data, content_type))

    def body(self, question: Question) -> dict[str, Any]:
        """Return the body of a call that is not streamed."""
        body = self._wire.body(question)
        return {name: each for name, each in body.items() if not name.startswith("stream")}

    def read(self, take: Callable[[ReplyReading], None]) -> Reply:
        """Return a whole reply that `take` gives to its reading. Raises ModelCallFailed."""
        keyed = self._keyed or self.renew()
        reading = self._wire.reading(keyed.failures, streamed=False)
        take(reading)
        return replace(_hidden(reading.reply(), keyed), latency_ms=None)

    def failure(self, reported: Mapping[str, Any]) -> ModelCallFailed:
        """Return the failure that an answer reports."""
        return (self._keyed or self.renew()).failures.reported(reported)

    async def _with_key(self, call: Callable[[Keyed], Awaitable[Result]]) -> Result:
        """Call with the present key; a second time where it was refused and has changed since."""
        keyed = self._keyed or self.renew()
        try:
            return await call(keyed)
        except ModelUnusable as refused:
            if refused.kind is not FailureKind.AUTH or self._renewed(keyed) is keyed:
                raise
        return await call(self.renew())

    async def _exchange(
        self, method: str, path: str, data: bytes | None, content_type: str, keyed: Keyed
    ) -> bytes:
        path, _, query = path.partition("?")
        url = with_path("" if self._access.where is None else self._access.where.url, path)
        if query:
            url += f"{'&' if '?' in url else '?'}{query}"
        reading = WholeBody(keyed.failures, streamed=False)
        await keyed.connection.send(method, url, data, reading, content_type)
        return reading.body

    async def close(self) -> None:
        """Close its connections; calls in flight fail."""
        for each in (*self._earlier, *filter(None, [self._keyed])):
            await each.connection.close()

    def _renewed(self, refused: Keyed) -> Keyed:
        """Return the connection with the present key, or the refused one if there is no key."""
        try:
            return self.renew()
        except InvalidInput:
            return refused

    async def _ask(self, question: Question, keyed: Keyed) -> Reply:
        reading = self._wire.reading(keyed.failures, streamed=self._wire.streamed)
        usual = self._model.limits.first_byte_timeout_seconds
        keyed.connection.first_byte_seconds = self.loading_seconds or usual
        try:
            await keyed.connection.post(self._wire.body(question), reading)
        finally:
            self.loading_seconds = None
        return _hidden(reading.reply(), keyed)


def _hidden(reply: Reply, keyed: Keyed) -> Reply:
    if keyed.key is None or not keyed.key.is_secret:
        return reply
    return replace(reply, text=keyed.key.hide_in(reply.text))


LOADING_SECONDS: Final = 300.0
"""Seconds that a server on this machine or in its network may take to load its model. It begins
anew each time a client hangs up."""


def _loading_seconds(model: TutorModel, access: Access) -> float | None:
    """Return LOADING_SECONDS for a server nearby, unless the limits of `model` are chosen."""
    limits, usual = model.limits, Limits()
    chosen = (limits.timeout_seconds, limits.first_byte_timeout_seconds) != (
        usual.timeout_seconds,
        usual.first_byte_timeout_seconds,
    )
    host = None if access.where is None else urlsplit(access.where.url).hostname
    return None if chosen or not is_near(host or "") else LOADING_SECONDS


@dataclass(frozen=True, slots=True)
class Keyed:
    """A key, and the connection that sends it."""

    key: Key | None
    connection: Connection
    failures: Failures


def _connected(model: TutorModel, access: Access, wire: Wire, key: Key | None) -> Keyed:
    where = access.where
    if where is None:
        raise InvalidInput(f"model {model.id}: its address is unknown; give it a base_url")
    # A late import: it needs aiohttp.
    from socratic_runner.models.http.connection import Connection  # noqa: PLC0415

    url = with_path(where.url, wire.path)
    failures = Failures(
        f"{model.provider} at {where.origin}",
        key,
        longest=LONGEST_MESSAGE if where.own else LONGEST_FOREIGN_MESSAGE,
        called=Called(url, key is not None, _place_of(access.key), is_streamed=wire.streamed),
    )
    headers = wire.headers(key)
    connection = Connection(url, headers, model.limits, failures)
    return Keyed(key, connection, failures)


def _place_of(key: KeySource | None) -> str | None:
    """Return where a person changes a key."""
    return None if key is None else key.variable or f"the secret of its endpoint in {SETTING}"
