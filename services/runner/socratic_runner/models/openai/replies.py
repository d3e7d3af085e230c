"""Replies in the format of OpenAI's chat completions, with the variants of compatible servers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel

from socratic_bench.domain.response import Usage
from socratic_bench.errors import ModelCallFailed
from socratic_bench.scoring.statuses import Status
from socratic_runner.models.http.problems import parse
from socratic_runner.models.http.reading import Aside, Count, Name, Reading
from socratic_runner.models.http.server_sent_events import Event
from socratic_runner.models.stop_reasons import Ended

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


class _Choice(BaseModel):
    index: int | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    error: Any = None


class _OutputDetails(BaseModel):
    reasoning_tokens: Count = None


class Counts(BaseModel):
    """The `usage` of a reply."""

    prompt_tokens: Count = None
    """Includes cached tokens."""

    completion_tokens: Count = None
    total_tokens: Count = None
    completion_tokens_details: Annotated[_OutputDetails | None, Aside] = None

    def usage(self, *, wrote: bool, reasoned: bool) -> Usage:
        """Return the usage of a reply, given whether it had text, or reasoning.

        An impossible count is dropped: no input, or text of zero tokens.
        """
        written, read = self.completion_tokens, self.prompt_tokens or None
        if written is None or (wrote and written == 0):
            return Usage(input_tokens=read)
        apart = (self.total_tokens or 0) - (read or 0) - written
        if read is not None and apart > 0:
            # xAI and Google count reasoning apart from the written tokens, and only in the total.
            return Usage(visible_output_tokens=written, reasoning_tokens=apart, input_tokens=read)
        details = self.completion_tokens_details
        reasoning = (details.reasoning_tokens or 0) if details is not None else 0
        if reasoning > written or (reasoned and reasoning == 0):
            return Usage(unsplit_output_tokens=written, input_tokens=read)
        return Usage(
            visible_output_tokens=written - reasoning, reasoning_tokens=reasoning, input_tokens=read
        )


class _Groq(BaseModel):
    error: str | None = None
    """Why the stream was stopped early."""


class _Chunk(BaseModel):
    """A reply, or a piece of one."""

    choices: list[_Choice] | None = None
    x_groq: Annotated[_Groq | None, Aside] = None
    usage: Annotated[Counts | None, Aside] = None
    model: Name = None
    error: Any = None
    object: Name = None


class OpenAIReading(Reading):
    """Reads the reply to a chat completion."""

    _counts: Counts | None = None
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
        reason = choice.finish_reason
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
        return self._counts.usage(wrote=self.wrote, reasoned=self._reasoned)
