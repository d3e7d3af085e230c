"""Models on Amazon Bedrock, through its Converse API.

Their ids are `bedrock/` and the id of a model or an inference profile, or an ARN.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from socratic_bench.concurrency.deadlines import ThawingTimeout
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.built_in import BedrockOptions
from socratic_bench.providers.options import read_options
from socratic_runner.models.access import Access
from socratic_runner.models.aws.access import region_of, require_credentials, require_library
from socratic_runner.models.aws.connections import (
    BedrockConnection,
    BedrockRuntime,
    SharedConnections,
    Target,
)
from socratic_runner.models.aws.converse import Answer, request
from socratic_runner.models.aws.failures import failure_of, without_credentials

_CONNECTIONS: Final = SharedConnections()

_COUNTS_SECONDS: Final = 5.0
"""Seconds that the token counts may take after the stop reason."""

_TAIL_SECONDS: Final = 0.5
"""Seconds that the end of a stream may take after its last event; then the connection is reused."""

_MARGIN_SECONDS: Final = 0.5
"""Seconds before a call's deadline when the client takes a finished reply without waiting for
more."""


class BedrockClient:
    """Calls one model, over a connection that other clients may share."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(self, model: TutorModel, options: BedrockOptions, target: Target) -> None:
        self._model_id = model.name_at_provider
        self._limits = model.limits
        self._options = options
        self._target = target
        self._connection: BedrockConnection | None = None
        self._closed = False
        self._calls: set[asyncio.Task[Reply]] = set()

    async def ask(self, question: Question) -> Reply:
        """Return the model's reply; a cancellation ends the call and closes its connection."""
        if self._closed:
            raise ModelCallFailed(FailureKind.UNKNOWN, "the client is closed", retryable=False)
        if self._connection is None:
            self._connection = _CONNECTIONS.acquire(self._target)
        call = asyncio.create_task(self._call(self._connection, question))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if asking is None or asking.cancelling() or not call.cancelled():
                raise
            message = "the client was closed before the reply was finished"
            raise ModelCallFailed(FailureKind.CUT_STREAM, message, retryable=True) from None

    async def close(self) -> None:
        """End the calls in flight, and release the connection."""
        self._closed = True
        calls = set(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await _CONNECTIONS.release(self._target)

    async def _call(self, connection: BedrockConnection, question: Question) -> Reply:
        body = request(
            question,
            self._model_id,
            omit=frozenset(self._options.omit),
            fields=self._options.additional_model_request_fields,
            system_role=self._options.system_role,
        )
        try:
            bedrock = await connection.runtime()
            reply = await (self._streamed if self._options.stream else _whole)(bedrock, body)
        except Exception as error:
            failure = failure_of(error, own=self._target.own)
            if failure is None:
                raise
            # `from None`: the cause may contain credentials.
            raise failure from None
        return reply if self._target.own else replace(reply, text=without_credentials(reply.text))

    async def _streamed(self, bedrock: BedrockRuntime, body: dict[str, Any]) -> Reply:
        answer, first_token_ms, watch = Answer(), None, _Stopwatch()
        async with self._timeout(answer) as waiting:
            response = await bedrock.converse_stream(**body)
            stream, answer.headers = response["stream"], _headers(response)
            try:
                async with aclosing(aiter(stream)) as events:
                    async for event in events:
                        if answer.take_event(event) and first_token_ms is None:
                            first_token_ms = watch.ms
                        self._wait_for_more(answer, waiting, watch)
            except Exception as error:  # noqa: BLE001 - see the next line
                # An error after the end of a reply does not spoil it.
                if not answer.finished:
                    own = self._target.own
                    raise failure_of(error, answer.headers, own=own) or error from None
            finally:
                stream.close()
        return answer.reply(latency_ms=watch.ms, first_token_ms=first_token_ms)

    def _wait_for_more(self, answer: Answer, waiting: ThawingTimeout, watch: _Stopwatch) -> None:
        """Bound the wait for the rest of a finished reply, and no other wait."""
        if not answer.finished:
            waiting.reschedule(None)
        elif answer.complete or waiting.when() is None:
            rest = _TAIL_SECONDS if answer.complete else _COUNTS_SECONDS
            left = self._limits.timeout_seconds - _MARGIN_SECONDS - watch.ms / 1000
            waiting.reschedule(asyncio.get_running_loop().time() + min(rest, left))

    @asynccontextmanager
    async def _timeout(self, answer: Answer) -> AsyncIterator[ThawingTimeout]:
        """Make a timeout until the first event.

        The caller reschedules it after the first event, and again after the reply is finished.
        """
        seconds = self._limits.first_byte_timeout_seconds
        waiting = ThawingTimeout(asyncio.get_running_loop().time() + seconds)
        try:
            async with waiting:
                yield waiting
        except TimeoutError:
            if not waiting.expired():
                raise
            if answer.finished:
                return
            message = f"Bedrock sent nothing within {seconds:g} s"
            raise ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True) from None


def _headers(response: dict[str, Any]) -> dict[str, str]:
    return dict(response.get("ResponseMetadata", {}).get("HTTPHeaders", {}))


async def _whole(bedrock: BedrockRuntime, body: dict[str, Any]) -> Reply:
    answer, watch = Answer(), _Stopwatch()
    answer.take_response(await bedrock.converse(**body))
    return answer.reply(latency_ms=watch.ms)


class _Stopwatch:
    """Measures the time since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def ms(self) -> int:
        """Milliseconds since then."""
        return round((time.perf_counter() - self._started) * 1000)


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra without aiobotocore, InvalidInput for an unknown region, and
    MissingCredential if credentials are certainly missing.
    """
    require_library(model)
    region_of(model, read_options(model, BedrockOptions).region)
    require_credentials(model, bearer=_is_own(access))


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for a model on Bedrock; it connects at its first call."""
    check_access(model, access)
    options = read_options(model, BedrockOptions)
    target = Target(
        region=region_of(model, options.region),
        endpoint=None if access.where is None else access.where.url,
        own=_is_own(access),
        connect_timeout=model.limits.connect_timeout_seconds,
        # The caller keeps the deadline of the whole call.
        read_timeout=model.limits.timeout_seconds,
    )
    return BedrockClient(model, options, target)


def _is_own(access: Access) -> bool:
    """Return whether calls go to AWS itself.

    Only AWS gets a bearer token, since the token alone gives access to the account.
    """
    return access.where is None or access.where.own
