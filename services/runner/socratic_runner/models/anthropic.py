"""Anthropic's models over its Messages API: `anthropic/claude-sonnet-4-5` and the like."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.built_in import AnthropicOptions
from socratic_bench.providers.options import read_options
from socratic_runner.models.access import Access
from socratic_runner.models.chat import chat
from socratic_runner.models.http.batches import AnthropicBatches
from socratic_runner.models.http.client import Wire, call_headers, open_connection, require_key
from socratic_runner.models.http.keys import Key
from socratic_runner.models.http.reading import Aside, Count, Event, Name, ReplyReading

_LAST: Final = b"[DONE]"
"""OpenAI's end marker, which gateways add."""


class _Counts(BaseModel):
    input_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_creation_input_tokens: Count = None
    output_tokens: Count = None

    def updated(self, later: _Counts | None) -> _Counts:
        """Merge counts: a stream reports them at its beginning and again at its end."""
        told = {} if later is None else later.model_dump(exclude_none=True)
        return self.model_copy(update=told)

    def usage(self, *, wrote: bool, reasoned: bool) -> Usage:
        """Return the usage of a reply, given whether it had text, or reasoning.

        `output_tokens` includes reasoning, without a separate count. An impossible count is
        dropped: no input, or text of zero tokens.
        """
        read = self.input_tokens
        if read is not None:
            read += (self.cache_read_input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        written = None if wrote and self.output_tokens == 0 else self.output_tokens
        return Usage(
            visible_output_tokens=None if reasoned else written,
            unsplit_output_tokens=written if reasoned else None,
            input_tokens=read or None,
        ).with_cache(self.cache_read_input_tokens, self.cache_creation_input_tokens)


class _Block(BaseModel):
    """A content block, or a piece of one."""

    type: str
    text: str | None = None


class _Message(BaseModel):
    id: Name = None
    content: list[_Block]
    stop_reason: str | None = None
    model: Name = None
    usage: Annotated[_Counts | None, Aside] = None


class _Whole(_Message):
    """The body of a reply, which may report an error instead."""

    content: list[_Block] = []
    type: str
    error: Any = None


class _Delta(BaseModel):
    type: str | None = None
    text: str | None = None
    stop_reason: str | None = None


class _Event(BaseModel):
    type: str
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: Annotated[_Counts | None, Aside] = None
    error: Any = None


class AnthropicReading(ReplyReading):
    """Reads the reply to a message."""

    _counts = _Counts()

    def take_event(self, event: Event) -> None:
        """Take an event; ignore unknown kinds."""
        if event.data.strip() == _LAST:
            self.complete = True
            return
        read = self._read(_Event, event.data)
        if read.type == "error":
            raise self.reported(read.error)
        if read.message is not None:
            self._take_message(read.message)
        if read.content_block is not None:
            self._take_block(read.content_block.type, read.content_block.text)
        if read.delta is not None:
            if read.delta.type is not None:
                self._take_block(read.delta.type, read.delta.text)
            self._stop_reason = read.delta.stop_reason or self._stop_reason
        self._counts = self._counts.updated(read.usage)
        self.complete = read.type == "message_stop"

    def take_whole(self, body: bytes) -> None:
        """Take a message that came in one piece."""
        read = self._read(_Whole, body)
        self.streamed = False
        if read.error:
            raise self.reported(read.error)
        if read.type != "message":
            raise self.unreadable("it is not a message", body)
        self._take_message(read)
        self.complete = True

    def _take_message(self, message: _Message) -> None:
        for block in message.content:
            self._take_block(block.type, block.text)
        self._model = message.model or self._model
        self._reply_id = message.id or self._reply_id
        self._stop_reason = message.stop_reason or self._stop_reason
        self._counts = self._counts.updated(message.usage)

    def _take_block(self, kind: str, text: str | None) -> None:
        if kind in {"text", "text_delta"}:
            self._write(text or "")
        elif "thinking" in kind:
            self._reason()

    def _usage(self) -> Usage:
        return self._counts.usage(wrote=self.wrote, reasoned=self._reasoned)


API_VERSION: Final = "2023-06-01"


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    require_key(model, access)


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for `model`; it connects at its first call."""
    options = read_options(model, AnthropicOptions)
    wire = Wire(
        path="/v1/messages",
        headers=partial(_headers, options),
        body=partial(_body, options.name_at_service(model), options),
        reading=AnthropicReading,
        streamed=options.stream,
        batches=AnthropicBatches if options.batch else None,
    )
    return open_connection(model, access, wire)


def _headers(options: AnthropicOptions, key: Key | None) -> dict[str, str]:
    usual = {} if key is None else {"x-api-key": key.reveal()}
    return {"anthropic-version": API_VERSION, **call_headers(options, usual, key)}


def _body(name: str, options: AnthropicOptions, question: Question) -> dict[str, Any]:
    parameters = question.parameters
    sampling = {"temperature": parameters.temperature, "top_p": parameters.top_p}
    return {
        "model": name,
        **({"system": question.system_prompt} if question.system_prompt.strip() else {}),
        "messages": chat(question),
        "max_tokens": parameters.max_tokens,
        "stream": options.stream,
        **{
            name: value
            for name, value in sampling.items()
            if value is not None and name not in options.omit
        },
        **options.extra_body,
    }
