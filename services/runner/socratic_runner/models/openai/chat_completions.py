"""Calls servers that speak OpenAI's chat completions.

`openai/gpt-5`, `ollama/llama3.2` and the like go to their provider's usual address, or to the
model's base_url; `openai-compatible/NAME` goes to its base_url, which is required.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, cast

from pydantic import BaseModel

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.built_in import OpenAIOptions, OpenAISpec, Preset
from socratic_bench.providers.options import read_options
from socratic_bench.providers.registry import spec_of
from socratic_bench.scoring.answer_notes import SPLIT
from socratic_bench.scoring.exchange import Status
from socratic_runner.models.access import Access
from socratic_runner.models.chat import chat
from socratic_runner.models.http.batches import OpenAIBatches
from socratic_runner.models.http.client import Wire, call_headers, open_connection, require_key
from socratic_runner.models.http.keys import Key
from socratic_runner.models.http.problems import parse
from socratic_runner.models.http.reading import Aside, Count, Event, Name, ReplyReading
from socratic_runner.models.stop_reasons import Ended, tells_of_an_unfinished_reply

_LAST: Final = b"[DONE]"

_NONE: Final = frozenset({"null", "none"})
"""Words for no stop reason: Alibaba writes `null` as text."""


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None


class _ProviderFields(BaseModel):
    native_finish_reason: Name = None


class _Choice(BaseModel):
    index: int | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    native_finish_reason: Name = None
    """What the provider behind a gateway reported; the gateway may have made `stop` of it."""

    provider_specific_fields: Annotated[_ProviderFields | None, Aside] = None
    error: Any = None

    @property
    def reason(self) -> str | None:
        """The stop reason, and the provider's own where a gateway covers an unfinished one."""
        fields = self.provider_specific_fields
        native = self.native_finish_reason or (fields.native_finish_reason if fields else None)
        if native is None or self.finish_reason is None or not tells_of_an_unfinished_reply(native):
            return self.finish_reason
        return native


class _OutputDetails(BaseModel):
    reasoning_tokens: Count = None


class _InputDetails(BaseModel):
    cached_tokens: Count = None
    cache_write_tokens: Count = None


_NOTHING_CACHED: Final = _InputDetails()


class TokenUsage(BaseModel):
    """The `usage` of a reply."""

    prompt_tokens: Count = None
    """Includes cached tokens."""

    completion_tokens: Count = None
    total_tokens: Count = None
    completion_tokens_details: Annotated[_OutputDetails | None, Aside] = None
    prompt_tokens_details: Annotated[_InputDetails | None, Aside] = None
    prompt_cache_hit_tokens: Count = None
    """DeepSeek's count of cached tokens."""

    @property
    def split(self) -> int:
        """Reasoning tokens that are counted apart."""
        details = self.completion_tokens_details
        return (details.reasoning_tokens or 0) if details is not None else 0

    def usage(self, *, wrote: bool, reasoned: bool) -> Usage:
        """Return the usage of a reply, given whether it had text, or reasoning.

        An impossible count is dropped: no input, or text of zero tokens.
        """
        cache = self.prompt_tokens_details or _NOTHING_CACHED
        return self._of_output(wrote=wrote, reasoned=reasoned).with_cache(
            cache.cached_tokens or self.prompt_cache_hit_tokens, cache.cache_write_tokens
        )

    def _of_output(self, *, wrote: bool, reasoned: bool) -> Usage:
        written, read = self.completion_tokens, self.prompt_tokens or None
        if written is None or (wrote and written == 0):
            return Usage(input_tokens=read)
        apart = (self.total_tokens or 0) - (read or 0) - written
        if read is not None and apart > 0:
            # xAI and Google count reasoning apart from the written tokens, and only in the total.
            return Usage(visible_output_tokens=written, reasoning_tokens=apart, input_tokens=read)
        reasoning = self.split
        if reasoning > written:
            # A gateway that rebuilds a stream's counts leaves reasoning out of the completion's.
            return Usage(
                visible_output_tokens=written, reasoning_tokens=reasoning, input_tokens=read
            )
        if reasoned and reasoning == 0:
            return Usage(unsplit_output_tokens=written, input_tokens=read)
        return Usage(
            visible_output_tokens=written - reasoning, reasoning_tokens=reasoning, input_tokens=read
        )


class _Groq(BaseModel):
    error: str | None = None
    """Why the stream was stopped early."""


class _Chunk(BaseModel):
    """A reply, or a piece of one."""

    id: Name = None

    choices: list[_Choice] | None = None
    x_groq: Annotated[_Groq | None, Aside] = None
    usage: Annotated[TokenUsage | None, Aside] = None
    model: Name = None
    provider: Name = None
    """The provider that a router chose, as OpenRouter names it."""

    error: Any = None
    object: Name = None


_GATEWAY: Final = "x-litellm-call-id"
"""A header of LiteLLM's proxy."""


class OpenAIReading(ReplyReading):
    """Reads the reply to a chat completion."""

    _counts: TokenUsage | None = None
    _refused = False
    _strange = b""
    """The last data that belongs to no reply."""

    _has_choices = False

    def take_event(self, event: Event) -> None:
        """Take a chunk, or the end marker."""
        if event.data.strip() == _LAST:
            self.complete = True
            return
        if event.name == "error" and isinstance(parsed := parse(event.data), dict):
            raise self.failures.reported(parsed, self.headers)
        if not self._take(self._read(_Chunk, event.data), event.data):
            self._strange = event.data

    def take_whole(self, body: bytes) -> None:
        """Take a reply that came in one piece."""
        self.streamed = False
        if not self._take(self._read(_Chunk, body), body):
            raise self.unreadable("it has no choices", body)
        self.complete = True

    def _take(self, chunk: _Chunk, data: bytes) -> bool:
        """Take a chunk; returns whether it had choices."""
        if chunk.error:
            raise self.failures.reported(parse(data), self.headers)
        if chunk.x_groq is not None and chunk.x_groq.error:
            raise self.reported(chunk.x_groq.error)
        if chunk.object == "error":  # FastChat, and vLLM before 0.10
            raise self.failures.reported(parse(data), self.headers)
        self._model = chunk.model or self._model
        self._routed_to = chunk.provider or self._routed_to
        self._reply_id = chunk.id or self._reply_id
        self._counts = chunk.usage or self._counts
        for choice in chunk.choices or ():
            if not choice.index:
                self._take_choice(choice)
        self._has_choices = self._has_choices or bool(chunk.choices)
        return bool(chunk.choices)

    def _take_choice(self, choice: _Choice) -> None:
        # D-081: beside a delta, or after some, a message repeats their text.
        message = choice.delta or (None if self.streamed and self.wrote else choice.message)
        if message is not None:
            self._take_message(message)
        if choice.error or choice.finish_reason == "error":
            raise self.reported(choice.error or "the model failed")
        reason = choice.reason
        if reason and reason.lower() not in _NONE:
            self._stop_reason = reason

    def _take_message(self, message: _Message) -> None:
        if message.reasoning_content or message.reasoning:
            self._reason()
        content = message.content or ""
        if isinstance(content, str):
            self._write(content)
            content = []
        for part in content:
            if part.type == "thinking":
                self._reason()
            elif part.type == "text":
                self._write(part.text or "")
        if message.refusal:
            self._refused = True
            self._write(message.refusal)

    def cut(self, why: str) -> ModelCallFailed:
        """Make the failure of an incomplete reply, or of a stream that held none."""
        if self._strange and not self._has_choices:
            return self.unreadable("it has no choices", self._strange)
        return super().cut(why)

    def _ended(self, reason: str) -> Ended:
        ended = super()._ended(reason)
        return Ended(Status.REFUSED) if self._refused else ended

    def _usage(self) -> Usage:
        if self._counts is None:
            return Usage()
        if self.streamed and self._counts.split and _GATEWAY in self.headers:
            # This gateway divides the count of a stream by itself.
            self.notes.add(SPLIT)
        return self._counts.usage(wrote=self.wrote, reasoned=self._reasoned)


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    require_key(model, access)


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for `model`; it connects at its first call."""
    options = read_options(model, OpenAIOptions)
    preset = cast("OpenAISpec", spec_of(model)).preset
    wire = Wire(
        path="/chat/completions",
        headers=partial(_headers, options),
        body=partial(_body, options.name_at_service(model), preset, options),
        reading=OpenAIReading,
        streamed=options.stream,
        batches=OpenAIBatches if options.batch else None,
    )
    return open_connection(model, access, wire)


def _headers(options: OpenAIOptions, key: Key | None) -> dict[str, str]:
    usual = {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}
    return call_headers(options, usual, key)


def _body(name: str, preset: Preset, options: OpenAIOptions, question: Question) -> dict[str, Any]:
    parameters = question.parameters
    optional: dict[str, tuple[str, Any]] = {
        "temperature": ("temperature", parameters.temperature),
    }
    if parameters.top_p is not None:
        optional["top_p"] = "top_p", parameters.top_p
    if preset.seed_field is not None:
        optional["seed"] = preset.seed_field, question.seed
    if options.stream and preset.stream_options:
        optional["stream_options"] = "stream_options", {"include_usage": True}
    sent = [field for option, field in optional.items() if option not in options.omit]
    return {
        "model": name,
        "messages": chat(question, system_role=options.system_role),
        "stream": options.stream,
        options.max_tokens_field or preset.max_tokens_field: parameters.max_tokens,
        **dict(sent),
        **options.extra_body,
    }
