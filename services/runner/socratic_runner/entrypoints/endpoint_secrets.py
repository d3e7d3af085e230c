"""Keys of endpoints that are secrets of AWS: read when a call needs one, and again once refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog
from pydantic import SecretStr

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import (
    FailureKind,
    InvalidInput,
    InvalidSettings,
    ModelCallFailed,
    ModelUnusable,
)
from socratic_bench.plugins import require_package
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.endpoints import Endpoint, Endpoints, KeySource, read_endpoints
from socratic_bench.providers.registry import destination
from socratic_runner.conversations.call_outcomes import not_callable
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings

log = structlog.get_logger(__name__)

ReadSecret = Callable[[str], Awaitable[str]]
"""Returns the text of a secret, by the secret's name. Raises InvalidSettings."""


class SecretEndpoints:
    """The endpoints of a runner: those of its setting, and those whose keys are secrets of AWS."""

    def __init__(
        self,
        settings: RunnerSettings,
        *,
        read_secret: ReadSecret | None = None,
        base_folder: Path | None = None,
    ) -> None:
        """`base_folder` has the files that models' ids name.

        Raises InvalidSettings, and MissingExtra where secrets are named and AWS's client is
        missing.
        """
        self._listed = read_endpoints(settings.endpoints)
        self._secrets = settings.endpoint_secrets
        self._read_secret = read_secret or _read_of_aws
        if self._secrets:
            require_package(
                "aiobotocore",
                needed_by="SOCRATIC_ENDPOINT_SECRETS",
                extra="socratic-ai-bench-runner[aws]",
            )
        self._base_folder = base_folder
        self._endpoints = Endpoints(self._listed)
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    def open_client(self, model: TutorModel) -> ModelClient:
        """Return a client for `model`. Raises InvalidInput.

        Secrets are read at the first call of a model that has an address.
        """
        if self._secrets and destination(model) is not None:
            return _ClientWithSecrets(model, self)
        return self.client_with(self._endpoints, model)

    def client_with(self, endpoints: Endpoints, model: TutorModel) -> ModelClient:
        """Return a client for `model` with the keys of these endpoints. Raises InvalidInput."""
        return open_client(model, base_folder=self._base_folder, endpoints=endpoints)

    async def read(self, since: float) -> Endpoints:
        """Return the endpoints as they were read after `since`, a time of the loop.

        Callers that ask at the same time share one reading. Raises InvalidSettings.
        """
        async with self._reading:
            if self._read_at <= since:
                begun = _now()
                self._endpoints = Endpoints((*self._listed, *await self._of_secrets()))
                self._read_at = begun
            return self._endpoints

    async def _of_secrets(self) -> tuple[Endpoint, ...]:
        names = list(self._secrets)
        secrets = await asyncio.gather(*map(self._read_secret, self._secrets.values()))
        found = {name: _parsed(name, secret) for name, secret in zip(names, secrets, strict=True)}
        return read_endpoints(SecretStr(json.dumps(found)))


class _ClientWithSecrets:
    """Calls a model whose key may be a secret, which somebody may change at any time."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(self, model: TutorModel, endpoints: SecretEndpoints) -> None:
        self._model = model
        self._endpoints = endpoints
        self._client: ModelClient | None = None
        self._key: KeySource | None = None
        self._earlier: list[ModelClient] = []
        """The clients with earlier keys: calls of theirs may be in flight."""

    async def ask(self, question: Question) -> Reply:
        """Call the model; once more where its key was refused and has changed since."""
        client, begun = await self._opened(), _now()
        try:
            return await client.ask(question)
        except ModelCallFailed as refused:
            if refused.kind is not FailureKind.AUTH or not await self._has_new_key(client, begun):
                raise
        return await (await self._opened()).ask(question)

    async def close(self) -> None:
        """Close the clients with all keys."""
        clients = [*self._earlier, *filter(None, [self._client])]
        self._client, self._earlier = None, []
        for client in clients:
            await client.close()

    async def _opened(self) -> ModelClient:
        """Return the client with the present key.

        Raises ModelCallFailed while the secrets cannot be read, and ModelUnusable without a key.
        """
        if self._client is not None:
            return self._client
        try:
            endpoints = await self._endpoints.read(float("-inf"))
        except InvalidSettings as error:
            raise ModelCallFailed(FailureKind.UNREACHABLE, str(error), retryable=True) from None
        return self._client_with(endpoints)

    async def _has_new_key(self, refused: ModelClient, begun: float) -> bool:
        """Read the secrets again after a call that began at this time; tell if the key is new."""
        if self._client is not refused:
            return True  # another call has found it meanwhile
        try:
            endpoints = await self._endpoints.read(begun)
        except InvalidSettings as error:
            log.warning("keys not read again", model=self._model.id, reason=str(error))
            return False
        return self._client_with(endpoints) is not refused

    def _client_with(self, endpoints: Endpoints) -> ModelClient:
        """Return a client with the key of these endpoints: the one in use, or else a new one.

        Raises ModelUnusable.
        """
        try:
            where = destination(self._model)
            key = None if where is None else endpoints.key_for(self._model, where)
            if self._client is not None and key == self._key:
                return self._client
            client = self._endpoints.client_with(endpoints, self._model)
        except InvalidInput as error:
            failure = not_callable(error)
            raise ModelUnusable(failure.kind, str(failure)) from None
        if self._client is not None:
            log.info("key changed", model=self._model.id)
            self._earlier.append(self._client)
        self._client, self._key = client, key
        return client


def _parsed(name: str, secret: str) -> object:
    try:
        return json.loads(secret)
    except (ValueError, RecursionError):
        raise InvalidSettings(
            f"SOCRATIC_ENDPOINT_SECRETS: {name}: its secret must be JSON, such as "
            '{"origin": "https://llm.example.org", "secret": "…"}'
        ) from None


async def _read_of_aws(name: str) -> str:
    from socratic_bench.adapters.aws.documents import (  # noqa: PLC0415 - only when asked for
        read_secret,
    )

    return await read_secret(name)


def _now() -> float:
    return asyncio.get_running_loop().time()
