"""Validates nodes against the types of the domain, with sentences for people."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, JsonValue, ValidationError

from socratic_bench.planning.config_file.source import Mistakes, Node, shown

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "finite_number": "a number",
    "string_type": "text",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "must be {} or more"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "must be {} or less"),
    "less_than": ("lt", "must be less than {}"),
}


def validate(
    kind: type[M], node: Node, mistakes: Mistakes, *, ignore_missing: bool = False
) -> M | None:
    """Return `node` as `kind`; None after a mistake, with every mistake noted.

    Values keep their types: a number in quotes is text. `ignore_missing` notes no missing fields.
    """
    try:
        return kind.model_validate_json(json.dumps(node.plain()), strict=True)
    except ValidationError as error:
        note_mistakes(error, kind, node, mistakes, ignore_missing=ignore_missing)
        return None


def note_mistakes(
    error: ValidationError,
    kind: type[BaseModel],
    node: Node,
    mistakes: Mistakes,
    *,
    ignore_missing: bool = False,
) -> None:
    """Note each error of pydantic at its place in `node`, which is not a valid `kind`."""
    for detail in error.errors(include_url=False, include_input=False):
        if ignore_missing and detail["type"] == "missing":
            continue
        steps = detail["loc"]
        if detail["type"] == "extra_forbidden":
            problem = unknown_field(str(steps[-1]), _known_fields(kind, steps[:-1]))
        else:
            found = node.at(steps)
            problem = _problem(detail["type"], detail.get("ctx", {}), found)
        mistakes.add(node.place_of(steps), problem)


_SECRETS = re.compile(
    r"(api|secret|access)[_-]?key|token|secret|password|authorization", re.IGNORECASE
)


_SHORTEST_PART = 4
"""Letters of a name that may be a part of another name, at least: `prompt` of `system_prompt`."""


def unknown_field(name: str, known: Collection[str]) -> str:
    """Return the problem of an unknown field, with the similar field or with all known ones."""
    if _SECRETS.fullmatch(name):
        return "a secret is never written here: remove it, and put it into the environment"
    if meant := close_match(name, known):
        return f"unknown field; did you mean `{meant}`?"
    return f"unknown field; there are {', '.join(f'`{field}`' for field in known)}"


def close_match(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like `name` or contains it, or None."""
    written = name[:80].lower()
    matches = get_close_matches(written, known, n=1, cutoff=0.75)
    if matches or len(written) < _SHORTEST_PART:
        return matches[0] if matches else None
    return min((each for each in known if written in each), key=len, default=None)


def _known_fields(kind: type[BaseModel], steps: Sequence[str | int]) -> Collection[str]:
    for step in steps:
        annotation = kind.model_fields[str(step)].annotation
        kind = next(
            choice
            for choice in (annotation, *get_args(annotation))
            if isinstance(choice, type) and issubclass(choice, BaseModel)
        )
    return kind.model_fields


def _problem(error: str, context: dict[str, Any], node: Node | None) -> str:
    if error == "missing":
        return "is missing"
    value = node.plain() if node else None
    if expected := _EXPECTED.get(error):
        unquoted = expected == "text" and isinstance(value, int | float)
        remedy = ": put it in quotes" if unquoted else ""
        return f"must be {expected}, not {shown(value)}{remedy}"
    if bound := _BOUNDS.get(error):
        name, sentence = bound
        return f"{sentence.format(_number(context[name]))}, not {shown(value)}"
    return _text_problem(error, context, value)


def _number(bound: float | Decimal) -> str:
    return f"{Decimal(str(bound)).normalize():f}"


def _text_problem(error: str, context: dict[str, Any], value: JsonValue) -> str:
    if error == "string_too_short":
        return "must not be empty"
    if error == "string_too_long":
        length = len(value) if isinstance(value, str) else 0
        return f"must have at most {context['max_length']} characters, not {length}"
    if error != "string_pattern_mismatch":
        return f"is not allowed here: {shown(value)}"
    # Of the patterns there are, only that of a model id has a slash.
    if "/" in context["pattern"]:
        return f"must be `provider/name`, such as `reference/socratic`, not {shown(value)}"
    return f"must be one line without spaces at its ends, not {shown(value)}"
