"""Models on Amazon Bedrock, through its Converse interface.

Their ids are `bedrock/` and the id of a model or an inference profile, or an ARN.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, JsonValue

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import FailureKind, ModelClient, Question, Reply
from socratic_runner.models.aws.access import (
    endpoint_of,
    region_of,
    require_credentials,
    require_library,
)
from socratic_runner.models.aws.connections import (
    BedrockRuntime,
    Connection,
    SharedConnections,
    Target,
)
from socratic_runner.models.aws.converse import Answer, request
from socratic_runner.models.aws.failures import failure_of
from socratic_runner.models.options import Options, read_options

_CONNECTIONS: Final = SharedConnections()


class BedrockOptions(Options):
    """The options of a model on Bedrock."""

    region: str | None = None
    """The AWS region that serves it; None: its ARN's, the environment's or the profile's."""

    stream: bool = True
    """Whether the reply comes piece by piece, which shows how long its first token took. There are
    models that cannot."""

    additional_model_request_fields: dict[str, JsonValue] = Field(default_factory=dict)
    """What goes to the model as it is, such as how much it may reason."""

    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """Sampling parameters that the model does not take."""


class BedrockClient:
    """Speaks to one model, over a connection that it may share with others."""

    concurrency: int | None = None
    answers_at_once = False

    def __init__(self, model: TutorModel, options: BedrockOptions, target: Target) -> None:
        self._model_id = model.id.partition("/")[2]
        self._first_event_seconds = model.limits.first_byte_timeout_seconds
        self._options = options
        self._target = target
        self._connection: Connection | None = None
        self._closed = False
        self._calls: set[asyncio.Task[Reply]] = set()

    async def ask(self, question: Question) -> Reply:
        """The model's reply; cancelling ends the call and closes its connection."""
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
        """End the calls that are running, and give the connection back."""
        self._closed = True
        calls = set(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await _CONNECTIONS.release(self._target)

    async def _call(self, connection: Connection, question: Question) -> Reply:
        body = request(
            question,
            self._model_id,
            omit=frozenset(self._options.omit),
            fields=self._options.additional_model_request_fields,
        )
        try:
            bedrock = await connection.runtime()
            return await (self._streamed if self._options.stream else _whole)(bedrock, body)
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            # Without its cause, in which credentials may stand.
            raise failure from None

    async def _streamed(self, bedrock: BedrockRuntime, body: dict[str, Any]) -> Reply:
        answer, first_token_ms, watch = Answer(), None, _Stopwatch()
        async with self._patience() as waiting:
            stream = (await bedrock.converse_stream(**body))["stream"]
            try:
                async with aclosing(aiter(stream)) as events:
                    async for event in events:
                        waiting.reschedule(None)
                        if answer.take_event(event) and first_token_ms is None:
                            first_token_ms = watch.ms
            finally:
                stream.close()
        return answer.reply(latency_ms=watch.ms, first_token_ms=first_token_ms)

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[asyncio.Timeout]:
        """The time until the first event, to be rescheduled when it has come."""
        seconds = self._first_event_seconds
        waiting = asyncio.timeout(seconds)
        try:
            async with waiting:
                yield waiting
        except TimeoutError:
            if not waiting.expired():
                raise
            message = f"Bedrock sent nothing within {seconds:g} s"
            raise ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True) from None


async def _whole(bedrock: BedrockRuntime, body: dict[str, Any]) -> Reply:
    answer, watch = Answer(), _Stopwatch()
    answer.take_response(await bedrock.converse(**body))
    return answer.reply(latency_ms=watch.ms)


class _Stopwatch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def ms(self) -> int:
        """Milliseconds since then."""
        return round((time.perf_counter() - self._started) * 1000)


def check_model(model: TutorModel, base_folder: Path | None) -> None:
    """Raise InvalidInput for a wrong option or base_url."""
    read_options(model, BedrockOptions)
    endpoint_of(model)


def check_access(model: TutorModel) -> None:
    """Raise MissingExtra without aiobotocore, InvalidInput if the region is not known, and
    MissingCredential if there certainly are no credentials.
    """
    check_model(model, None)
    require_library(model)
    region_of(model, read_options(model, BedrockOptions).region)
    require_credentials(model)


def open_client(model: TutorModel, base_folder: Path | None) -> ModelClient:
    """A client for a model on Bedrock; it connects when it is first asked."""
    check_access(model)
    options = read_options(model, BedrockOptions)
    target = Target(
        region=region_of(model, options.region),
        endpoint=endpoint_of(model),
        connect_timeout=model.limits.connect_timeout_seconds,
        # Whoever asks keeps the deadline of the whole call.
        read_timeout=model.limits.timeout_seconds,
    )
    return BedrockClient(model, options, target)


def fingerprint(model: TutorModel, base_folder: Path | None) -> None:
    """There are no files that decide about the responses."""
