"""Says in sentences for people what pydantic found wrong with a value."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

MISTAKES_NAMED: Final = 3
"""The most mistakes that one sentence names."""

_EXPECTED: Final = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "finite_number": "a number",
    "bool_type": "`true` or `false`",
    "bool_parsing": "`true` or `false`",
    "string_type": "text",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "must be {} or more"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "must be {} or less"),
    "less_than": ("lt", "must be less than {}"),
}
_OF_THE_WHOLE: Final = {
    "missing": "is missing",
    "json_invalid": "is not JSON: {error}",
    "union_tag_not_found": "has no {discriminator}",
    "union_tag_invalid": "has an unknown {discriminator}: {tag:.60}",
}
_OTHER_WORDS: Final = {
    **dict.fromkeys(("question", "input", "text", "message", "instruction", "query"), "prompt"),
    **dict.fromkeys(("category", "subject", "topic", "group", "kind", "type"), "dimension"),
}
"""Words of other tools for fields of ours."""

_SHORTEST_PART: Final = 4
"""Letters of a name that may be a part of another name, at least: `prompt` of `system_prompt`."""


def mistakes_in(
    error: ValidationError,
    kind: type[BaseModel] | None = None,
    *,
    within: str = "",
    shows_values: bool = False,
) -> str:
    """Return a sentence with the first mistakes, each with its place, and the number of others.

    `kind` is the type that was validated; an unknown field is compared with its fields. `within` is
    the place of the whole value. Values may be secrets or a person's text, so the sentence has them
    only with `shows_values`.
    """
    first = error.errors(include_url=False)[:MISTAKES_NAMED]
    more = error.error_count() - len(first)
    told = "; ".join(_mistake(each, kind, within, shows_value=shows_values) for each in first)
    return f"{told} (and {more} more)" if more else told


def _mistake(
    error: ErrorDetails, kind: type[BaseModel] | None, within: str, *, shows_value: bool
) -> str:
    place = ".".join(str(step) for step in (within, *error["loc"]) if step != "")
    problem = problem_of(error, kind, shows_value=shows_value)
    return f"{place}: {problem}" if place else problem


def problem_of(
    error: ErrorDetails, kind: type[BaseModel] | None = None, *, shows_value: bool = True
) -> str:
    """Return what is wrong with one value, without its place: "must be 1 or more, not 0"."""
    problem, context = error["type"], error.get("ctx", {})
    if sentence := _OF_THE_WHOLE.get(problem):
        return sentence.format_map(context)
    if problem == "extra_forbidden":
        steps = error["loc"]
        return unknown_field(str(steps[-1]), _fields_at(kind, steps[:-1]) if kind else ())
    value = error["input"]
    found = f", not {shown(value)}" if shows_value else ""
    if expected := _EXPECTED.get(problem):
        unquoted = expected == "text" and isinstance(value, int | float) and shows_value
        return f"must be {expected}{found}{': put it in quotes' if unquoted else ''}"
    if bound := _BOUNDS.get(problem):
        name, comparison = bound
        return f"{comparison.format(_number(context[name]))}{found}"
    return _of_length(problem, context, value) or f"{_in_our_words(error['msg'])}{found}"


def _of_length(problem: str, context: Mapping[str, Any], value: object) -> str | None:
    if problem == "string_too_short":
        return "must not be empty"
    if problem == "string_too_long":
        length = len(value) if isinstance(value, str) else 0
        return f"must have at most {context['max_length']:,} characters, not {length:,}"
    if problem == "too_long" and isinstance(value, list | tuple):
        return f"must have at most {context['max_length']:,} entries, not {len(value):,}"
    return None


def _in_our_words(message: str) -> str:
    """Return pydantic's message as the predicate of a sentence whose subject is the value."""
    told = message.removeprefix("Value error, ")
    return told.replace("Input should", "must", 1)


_CONTROLS: Final = {"\r": "a carriage return", "\n": "a line break", "\t": "a tab", "\0": "a NUL"}


def control_character(text: str) -> str | None:
    """Return what is wrong with a value of the environment that has a control character.

    Line breaks and tabs may stand within a value, and not at its ends.
    """
    for position, character in enumerate(text):
        inside = text[:position].strip() and text[position:].strip()
        if character.isprintable() or (character in "\n\t" and inside):
            continue
        named = _CONTROLS.get(character, f"the character U+{ord(character):04X}")
        return f"contains {named} (character {position + 1}): remove it"
    return None


def _number(bound: float | Decimal) -> str:
    return f"{Decimal(str(bound)).normalize():f}"


def unknown_field(name: str, known: Collection[str]) -> str:
    """Return the problem of an unknown field, with the similar field or with all known ones."""
    meant = close_match(name, known) or _OTHER_WORDS.get(name.lower())
    if meant is not None and meant in known:
        return f"unknown field; did you mean `{meant}`?"
    there_are = f"; there are {', '.join(f'`{field}`' for field in known)}" if known else ""
    return f"unknown field{there_are}"


def close_match(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like `name` or contains it, or None."""
    written = name[:80].lower()
    matches = get_close_matches(written, known, n=1, cutoff=0.75)
    if matches or len(written) < _SHORTEST_PART:
        return matches[0] if matches else None
    return min((each for each in known if written in each), key=len, default=None)


MOST_CHOICES: Final = 20
"""The most known names that an error lists."""


def likely(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like `name`, as a question, or else all known ones."""
    choices = list(dict.fromkeys(known))
    if meant := close_match(name, choices):
        return f"did you mean {quoted(meant)}?"
    more = ", \u2026" if len(choices) > MOST_CHOICES else ""
    return f"there are: {', '.join(map(quoted, choices[:MOST_CHOICES])) or 'none'}{more}"


def _fields_at(kind: type[BaseModel], steps: Iterable[str | int]) -> Collection[str]:
    """Return the fields of the type that these steps lead to, without its `unwritten` ones."""
    for step in steps:
        if isinstance(step, str):
            annotation = kind.model_fields[step].annotation
            kind = next(
                choice
                for choice in (annotation, *get_args(annotation))
                if isinstance(choice, type) and issubclass(choice, BaseModel)
            )
    unwritten: Collection[str] = getattr(kind, "unwritten", ())
    return [name for name in kind.model_fields if name not in unwritten]


def shown(value: JsonValue) -> str:
    """Return a value as a message shows it: on one line and not too long."""
    if value is None:
        return "empty"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return json.dumps(value, default=str)


def quoted(text: str, limit: int = 60) -> str:
    """Return text in quotes, cut after `limit` characters, with unprintable ones escaped."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    escaped = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
    )
    return f'"{escaped}"'
