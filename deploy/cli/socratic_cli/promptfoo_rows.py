"""The answer in a row of promptfoo's results, as `promptfoo eval -o FILE.jsonl` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from socratic_bench.scoring.statuses import Status
from socratic_cli.conversations import student_and_turns
from socratic_cli.reply_ends import status_of

_THOUGHTS: Final = "Thinking: "
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
    tokens = _tokens(response, thought=text != output)
    return {**found, "text": text} | ({} if tokens is None else {"output_tokens": tokens})


def _without_thoughts(output: str) -> str:
    """Take the thoughts from the beginning: they end at a signature, or at the only blank line."""
    text = output
    while match := _SIGNED.match(text):
        text = text[match.end() :]
    if not text.startswith(_THOUGHTS):
        return text
    _, _, answer = text.partition("\n\n")
    if "\n\n" in answer.strip():
        raise ValueError(
            "thoughts stand before the answer, and nothing parts them: "
            "let promptfoo leave them out with `showThinking: false`"
        )
    return answer.strip()


def _tokens(response: Mapping[str, Any], *, thought: bool) -> int | None:
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
