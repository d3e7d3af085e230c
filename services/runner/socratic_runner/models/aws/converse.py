"""Bedrock's Converse format: requests and replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring.visible_text import joined
from socratic_runner.models.chat import count_in
from socratic_runner.models.stop_reasons import how_it_ended

_CACHED: Final = ("cacheReadInputTokens", "cacheWriteInputTokens")
"""Counts of input tokens that `inputTokens` does not include."""


def messages(question: Question, *, system_first: bool = False) -> list[dict[str, Any]]:
    """Return the conversation so far and the student's new message.

    `system_first` puts the system prompt before the student's first message.

    Bedrock refuses blank texts, and two messages of one speaker in a row. Where the tutor said
    nothing, the student's messages before and after become one.
    """
    said: list[dict[str, Any]] = []

    def say(role: str, text: str) -> None:
        if not text.strip():
            return
        if not said or said[-1]["role"] != role:
            said.append({"role": role, "content": []})
        said[-1]["content"].append({"text": text})

    if system_first:
        say("user", question.system_prompt)
    for turn in question.earlier_turns:
        say("user", turn.student)
        say("assistant", turn.tutor)
    say("user", question.student_message)
    return said


def request(
    question: Question,
    model_id: str,
    *,
    omit: frozenset[str],
    fields: Mapping[str, Any] | None,
    system_role: str = "system",
) -> dict[str, Any]:
    """Return the arguments of `converse` and `converse_stream`.

    `omit` names sampling parameters to leave out; `fields` goes to the model unchanged.
    `system_role` is the role in which the model reads the system prompt.
    """
    parameters = question.parameters
    sampling: dict[str, Any] = {"maxTokens": parameters.max_tokens}
    if "temperature" not in omit:
        sampling["temperature"] = parameters.temperature
    if "top_p" not in omit and parameters.top_p is not None:
        sampling["topP"] = parameters.top_p
    body: dict[str, Any] = {
        "modelId": model_id,
        "messages": messages(question, system_first=system_role == "user"),
        "inferenceConfig": sampling,
    }
    if question.system_prompt.strip() and system_role == "system":
        body["system"] = [{"text": question.system_prompt}]
    if fields:
        body["additionalModelRequestFields"] = dict(fields)
    return body


class Answer:
    """Reads Bedrock's answer, whole or event by event.

    Raises ModelCallFailed with MALFORMED_REPLY for an unreadable answer.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._reasoned = False
        self._stop_reason: str | None = None
        self._about: Mapping[str, Any] = {}
        self.headers: Mapping[str, str] = {}
        """The headers of the response, once it began."""

    @property
    def finished(self) -> bool:
        """True once the model reported a stop reason."""
        return self._stop_reason is not None

    @property
    def complete(self) -> bool:
        """True once nothing needed is missing."""
        return self.finished and bool(self._about)

    def take_event(self, event: Mapping[str, Any]) -> bool:
        """Read one event of a stream; returns whether it brought text or reasoning."""
        try:
            if "contentBlockDelta" in event:
                return self._take_block(event["contentBlockDelta"]["delta"])
            if "messageStop" in event:
                self._stop_reason = event["messageStop"]["stopReason"]
            elif "metadata" in event:
                self._about = event["metadata"]
        except (AttributeError, KeyError, TypeError) as error:
            raise _malformed(error) from None
        return False

    def take_response(self, response: Mapping[str, Any]) -> None:
        """Read a whole response."""
        try:
            for block in response["output"]["message"]["content"]:
                self._take_block(block)
            self._stop_reason = response["stopReason"]
            self._about = response
        except (AttributeError, KeyError, TypeError) as error:
            raise _malformed(error) from None

    def _take_block(self, block: Mapping[str, Any]) -> bool:
        text = block.get("text", "")
        self._texts.append(text)
        reasoned = "reasoningContent" in block
        self._reasoned = self._reasoned or reasoned
        return reasoned or bool(text)

    def reply(self, *, latency_ms: int, first_token_ms: int | None = None) -> Reply:
        """Return the reply.

        Raises ModelCallFailed if the reply ended without a stop reason, or is not a model's text.
        """
        reason = self._stop_reason
        if reason is None:
            message = "Bedrock's reply ended without a stop reason"
            raise ModelCallFailed(FailureKind.CUT_STREAM, message, retryable=True)
        if not isinstance(reason, str):
            raise _malformed(TypeError(f"its stop reason is {reason!r}"))
        ended = how_it_ended(reason)
        if isinstance(ended, FailureKind):
            message = f"Bedrock did not finish its reply; its stop reason is {reason}"
            raise ModelCallFailed(ended, message, retryable=True)
        try:
            return Reply(
                text=_whole(joined(self._texts)),
                status=ended.status,
                usage=self._usage(),
                latency_ms=latency_ms,
                stop_reason=reason,
                model_version=self._version(),
                first_token_ms=first_token_ms,
                error_kind=ended.error_kind,
            )
        except (AttributeError, TypeError, ValidationError) as error:
            raise _malformed(error) from None

    def _usage(self) -> Usage:
        counts = self._about.get("usage") or {}
        written, read = count_in(counts.get("outputTokens")), count_in(counts.get("inputTokens"))
        cached, cache_written = (count_in(counts.get(name)) or 0 for name in _CACHED)
        if read is not None:
            read += cached + cache_written
        return Usage(
            # Bedrock does not count reasoning apart from the answer.
            visible_output_tokens=None if self._reasoned else written,
            unsplit_output_tokens=written if self._reasoned else None,
            input_tokens=read,
        ).with_cache(cached, cache_written)

    def _version(self) -> str | None:
        """Return the model that a prompt router chose: Bedrock reports no other version."""
        router = (self._about.get("trace") or {}).get("promptRouter") or {}
        version = router.get("invokedModelId")
        return version if isinstance(version, str) else None


def _malformed(error: Exception) -> ModelCallFailed:
    what = "a count is wrong" if isinstance(error, ValidationError) else repr(error)
    message = f"Bedrock's reply cannot be read: {what}"
    return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)


def _whole(text: str) -> str:
    """Return a text with the halves of its characters joined; a lone half becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
