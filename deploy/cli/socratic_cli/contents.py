"""The text of a message's content: a string, or a list of parts with thoughts and calls of tools
among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Content(NamedTuple):
    """What a message says."""

    text: str
    thoughts: bool = False
    """Whether thoughts stand beside the text."""

    refused: bool = False
    """Whether it is a refusal."""


_THOUGHTS: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_text", "thoughts"}
)
_SILENT: Final = frozenset(
    {"tool_use", "tool_result", "tool_call", "function_call", "server_tool_use", "image"}
    | {"image_url", "input_image", "input_audio", "web_search_call", "web_search_tool_result"}
)
"""Types of parts that say nothing in words."""


def content_of(content: object) -> Content | None:
    """Return what a content says; None if it holds no text that can be read."""
    if isinstance(content, str):
        return Content(content)
    if isinstance(content, Mapping):
        inner = content.get("parts", content.get("content"))
        return content_of(inner) if isinstance(inner, list) else _of_part(content)
    if not isinstance(content, list) or not content:
        return None
    parts = [_of_part(part) for part in content]
    read = [part for part in parts if part is not None]
    if len(read) < len(parts):
        return None
    return Content(
        "".join(part.text for part in read),
        any(part.thoughts for part in read),
        any(part.refused for part in read),
    )


def _of_part(part: object) -> Content | None:
    if isinstance(part, str):
        return Content(part)
    if not isinstance(part, Mapping):
        return None
    kind, text = part.get("type"), part.get("text")
    if kind in _THOUGHTS or part.get("thought") is True or "reasoningContent" in part:
        return Content("", thoughts=True)
    if kind == "message":
        return content_of(part.get("content"))
    refused = kind == "refusal" or bool(part.get("refusal"))
    said = part.get("refusal") if refused and not isinstance(text, str) else text
    if isinstance(said, str):
        return Content(said, refused=refused)
    silent = refused or kind in _SILENT or "functionCall" in part
    return Content("", refused=refused) if silent else None
