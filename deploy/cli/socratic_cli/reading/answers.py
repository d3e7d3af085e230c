"""The tutor's answers in one record: a chat's turns, a stored reply of an API, or a plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from socratic_bench.scoring.exchange import Status
from socratic_cli.reading.conversations import CHAT_KEYS, of_chat, student_and_turns
from socratic_cli.reading.files import TEXT_KEYS
from socratic_cli.reading.messages import SPEAKER_FIELDS, Content, content_of, side_of, status_of

_THOUGHTS_LEAD: Final = "Thinking: "
_SIGNED: Final = re.compile(r"Thinking: .*?\nSignature: [^\n]*(?:\n+|\Z)", re.DOTALL)
_PROVIDER_FAILED: Final = 2
"""The `failureReason` of a failed call; 1 is a failed assertion beside a good answer."""


def is_promptfoo_row(record: Mapping[str, Any]) -> bool:
    """Whether a record is such a row."""
    return "promptIdx" in record and ("testIdx" in record or "failureReason" in record)


def of_promptfoo_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a row as a record.

    Raises TypeError if it is no text, ValueError if nothing parts it from its thoughts.
    """
    response = row.get("response")
    response = response if isinstance(response, Mapping) else {}
    output = response.get("output")
    failed = row.get("failureReason") == _PROVIDER_FAILED or bool(response.get("error"))
    found: dict[str, Any] = {"id": row.get("id"), **_asked(row)}
    if failed or output is None:
        return {**found, "text": output if isinstance(output, str) else "", "status": Status.ERROR}
    if not isinstance(output, str):
        raise TypeError("`response.output` is no text: the provider gave an object")
    text = _without_thoughts(output)
    if (status := status_of(response)) is not None:
        found["status"] = status
    tokens = _promptfoo_tokens(response, thought=text != output)
    return {**found, "text": text} | ({} if tokens is None else {"output_tokens": tokens})


def _without_thoughts(output: str) -> str:
    """Take the thoughts from the beginning: they end at a signature, or at the only blank line."""
    text = output
    while match := _SIGNED.match(text):
        text = text[match.end() :]
    if not text.startswith(_THOUGHTS_LEAD):
        return text
    _, _, answer = text.partition("\n\n")
    if "\n\n" in answer.strip():
        raise ValueError(
            "thoughts stand before the answer, and nothing parts them: "
            "let promptfoo leave them out with `showThinking: false`"
        )
    return answer.strip()


def _promptfoo_tokens(response: Mapping[str, Any], *, thought: bool) -> int | None:
    """Return the visible tokens; None for a cached answer, and where thoughts may be in them."""
    usage = response.get("tokenUsage")
    if not isinstance(usage, Mapping) or response.get("cached"):
        return None
    whole, details = usage.get("completion"), usage.get("completionDetails")
    reasoning = details.get("reasoning") if isinstance(details, Mapping) else None
    if not isinstance(whole, int):
        return None
    if not isinstance(reasoning, int):
        return None if thought else whole
    return whole - reasoning if reasoning <= whole else None


def _asked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the student said, if the prompt is a chat."""
    prompt = row.get("prompt")
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else None
    if not isinstance(raw, str) or not raw.lstrip().startswith("["):
        return {}
    try:
        return student_and_turns(json.loads(raw)) or {}
    except (ValueError, TypeError, RecursionError):
        return {}


_DEEPEST: Final = 5
_LISTS: Final = ("choices", "candidates")
_WRAPPERS: Final = ("body", "response", "output", "message", "content", "result")
_USAGES: Final = ("usage", "usageMetadata", "usage_metadata", "token_usage")
_THOUGHTS: Final = ("reasoning", "reasoning_content", "thinking")

SPECIAL_KEYS: Final = frozenset(
    (
        *CHAT_KEYS,
        *_LISTS,
        *_USAGES,
        *_THOUGHTS,
        *SPEAKER_FIELDS,
        *("message", "parts", "body", "result", "promptIdx", "testIdx", "weight", "content"),
        *("error", "refusal", "isRefusal", "finish_reason", "finishReason"),
        *("stop_reason", "stopReason"),
    )
)
"""A record without these keys, and with a string as text, is one answer as it stands."""


class _Found(NamedTuple):
    """An answer within a record."""

    content: Content
    status: Status | None
    usage: Mapping[str, Any] | None


def is_plain(record: Mapping[str, Any]) -> bool:
    """Whether a record is one answer as it stands."""
    if not SPECIAL_KEYS.isdisjoint(record):
        return False
    return isinstance(next((record[key] for key in TEXT_KEYS if key in record), ""), str)


def names_speaker(record: Mapping[str, Any]) -> bool:
    """Whether a record is what one speaker says. A `user` beside a chat or a reply is who pays, or
    what the student says.
    """
    if SPEAKER_FIELDS.isdisjoint(record):
        return False
    user = record.get("user")
    if (
        isinstance(user, str)
        and side_of(user) is None
        and ("response" in record or "output" in record)
    ):
        return not (SPEAKER_FIELDS - {"user"}).isdisjoint(record)
    return not any(key in record for key in (*CHAT_KEYS, *_LISTS, "body", "custom_id"))


def answers_of(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the answers of a record, each as a record with `text`; none if nobody answers in it.

    The answers of a record with several have its `id` with `#1`, `#2` and so on. A record of an
    unknown shape comes back as it is. Raises TypeError or ValueError, saying what is wrong in it.
    """
    return list(_with_ids(record, _answers(record)))


def said_in(record: Mapping[str, Any]) -> str:
    """Return what a student's row says; empty for an unknown shape."""
    return "\n\n".join(each.content.text for each in _found_in(record, 0))


def _answers(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if is_promptfoo_row(record):
        return [of_promptfoo_row(record)]
    chat = next((record[key] for key in CHAT_KEYS if key in record), None)
    has_text = any(isinstance(record.get(key), str) for key in TEXT_KEYS)
    if record.get("weight") == 0 and chat is None:
        return []
    if chat is not None and not has_text:
        return _of_chat(record, chat)
    return _of_reply(record)


def _of_chat(record: Mapping[str, Any], chat: object) -> list[Mapping[str, Any]]:
    """Return the answers of a chat's messages, or of the reply beside them."""
    asked = student_and_turns(chat)
    if asked is not None and any(isinstance(record.get(key), dict | list) for key in _KEPT_REPLY):
        replies = _of_reply(record)
        return [{**asked, **reply} for reply in replies]
    answers = of_chat(chat)
    status, of_record = _status_within(record), _without_chat(record)
    failed = status is Status.ERROR or record.get("status") == Status.ERROR
    counted = _tokens(_usage(record), thought=False) if len(answers) == 1 else None
    found: list[Mapping[str, Any]] = []
    for number, answer in enumerate(answers, start=1):
        is_last = number == len(answers)
        end = {"status": status} if status is not None and (failed or is_last) else {}
        kept = of_record if is_last else {key: record.get(key) for key in _OF_EACH_ANSWER}
        if failed and "status" not in end:
            end = {"status": Status.ERROR}
        tokens = {} if counted is None or "output_tokens" in kept else {"output_tokens": counted}
        found.append({**kept, **tokens, **answer, **end})
    return found


_OF_EACH_ANSWER: Final = ("id", "answer_key")
"""The fields of a chat that each of its answers has; others are those of the last one."""

_KEPT_REPLY: Final = (*_LISTS, "response", "output", "body")


def _without_chat(record: Mapping[str, Any]) -> dict[str, Any]:
    left = (*CHAT_KEYS, *TEXT_KEYS)
    return {key: value for key, value in record.items() if key not in left}


def _of_reply(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = list(_found_in(record, 0))
    if not found:
        return _without_text(record)
    answers: list[Mapping[str, Any]] = []
    thought = any(_is_said(record.get(key)) for key in _THOUGHTS)
    for each in found:
        answer = {key: value for key, value in record.items() if key not in TEXT_KEYS}
        answer["text"] = each.content.text
        if each.status is not None and _is_open(record):
            answer["status"] = each.status
        if each.content.refused:
            answer["status"] = Status.REFUSED
        thinks = thought or each.content.thoughts
        tokens = _tokens(each.usage, thought=thinks) if len(found) == 1 else None
        if tokens is not None:
            answer.setdefault("output_tokens", tokens)
        elif thinks or (each.usage is not None and len(found) > 1):
            answer.pop("output_tokens", None)
        answers.append(answer)
    return answers


def _without_text(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the answers of a record in which no text stands."""
    status = _status_within(record)
    if status is Status.ERROR or status is Status.REFUSED:
        return [{**record, "text": "", "status": status}]
    is_message = not SPEAKER_FIELDS.isdisjoint(record)
    if is_message and any(key in record and record[key] is None for key in TEXT_KEYS):
        return []
    return [record]


def _is_open(record: Mapping[str, Any]) -> bool:
    """Whether a record does not state an unscored status itself."""
    return record.get("status") in (None, Status.OK, Status.TRUNCATED)


def _found_in(
    value: Mapping[str, Any],
    depth: int,
    status: Status | None = None,
    usage: Mapping[str, Any] | None = None,
) -> Iterator[_Found]:
    """Yield the answers at `value`, with the statuses and counts of what is around them."""
    own = status_of(value)
    status = own if own is not None and status in (None, Status.OK) else status
    usage = _usage(value) or usage
    contents = _contents(value)
    for content in contents:
        yield _Found(content, status, usage)
    if not contents and depth < _DEEPEST:
        for inner in _inner(value):
            yield from _found_in(inner, depth + 1, status, usage)


def _inner(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the choices of a reply, or what it wraps first."""
    for key in _LISTS:
        if isinstance(choices := value.get(key), list):
            return [choice for choice in choices if isinstance(choice, Mapping)]
    wrapped = (value.get(key) for key in _WRAPPERS)
    return [inner for inner in wrapped if isinstance(inner, Mapping)][:1]


def _contents(value: Mapping[str, Any]) -> list[Content]:
    """Return what a record says: several answers for a list of strings."""
    if any(isinstance(value.get(key), list) for key in _LISTS):
        return []
    said = _said(value)
    if isinstance(said, list) and len(said) > 1 and all(isinstance(each, str) for each in said):
        return [Content(text) for text in said]
    content = content_of(said)
    return [] if content is None else [content]


def _said(value: Mapping[str, Any]) -> object:
    """Return the text of a record, or its parts: the first that is not empty."""
    written = (value.get(key) for key in (*TEXT_KEYS, "parts"))
    there = [each for each in written if isinstance(each, str | list)]
    return next((each for each in there if each), there[0] if there else None)


def _status_within(value: Mapping[str, Any], depth: int = 0) -> Status | None:
    """Return the status that a record or a reply within it states; None if none does."""
    found = status_of(value)
    if found not in (None, Status.OK) or depth > _DEEPEST:
        return found
    inner: list[object] = [value.get(key) for key in _WRAPPERS]
    for key in _LISTS:
        choices = value.get(key)
        inner += choices if isinstance(choices, list) else []
    for each in inner:
        if isinstance(each, Mapping):
            deeper = _status_within(each, depth + 1)
            if deeper not in (None, Status.OK):
                return deeper
            found = found or deeper
    return found


def _usage(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((value[key] for key in _USAGES if isinstance(value.get(key), Mapping)), None)


def _tokens(usage: Mapping[str, Any] | None, *, thought: bool) -> int | None:
    """Return the visible output tokens; None where thoughts may be in the count."""
    if usage is None:
        return None
    if isinstance(gemini := usage.get("candidatesTokenCount"), int):
        return gemini
    names = ("completion_tokens", "output_tokens", "outputTokens")
    whole = next((usage[name] for name in names if isinstance(usage.get(name), int)), None)
    if whole is None or whole < 0:
        return None
    details = [usage.get("completion_tokens_details"), usage.get("output_tokens_details"), usage]
    declared = [each.get("reasoning_tokens") for each in details if isinstance(each, Mapping)]
    thoughts = next((each for each in declared if isinstance(each, int)), None)
    if thoughts is None:
        return None if thought else whole
    return whole - thoughts if thoughts <= whole else None


def usage_of(record: Mapping[str, Any]) -> tuple[int | None, int]:
    """Return the tokens that a record's reply read, None if unknown, and those of its thoughts."""
    at: object = record
    while isinstance(at, Mapping) and _usage(at) is None:
        at = next((at[key] for key in _WRAPPERS if isinstance(at.get(key), Mapping)), None)
    usage = (_usage(at) if isinstance(at, Mapping) else None) or {}
    names = ("prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount")
    read = next((usage[name] for name in names if isinstance(usage.get(name), int)), None)
    details = [usage.get("completion_tokens_details"), usage.get("output_tokens_details"), usage]
    declared = [each.get("reasoning_tokens") for each in details if isinstance(each, Mapping)]
    thoughts = next((each for each in declared if isinstance(each, int) and each >= 0), 0)
    return (read if read is not None and read >= 0 else None), thoughts


def _is_said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _with_ids(
    record: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    name = record.get("id", record.get("custom_id"))
    for number, answer in enumerate(answers, start=1):
        if isinstance(name, str | int):
            yield {**answer, "id": name if len(answers) == 1 else f"{name}#{number}"}
        else:
            yield answer
