"""Validates nodes against the types of the domain, with sentences for people."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from socratic_bench import invalid_values
from socratic_bench.invalid_values import problem_of, shown
from socratic_bench.planning.config_file.source import Mistakes, Node

M = TypeVar("M", bound=BaseModel)

_SECRETS = re.compile(
    r"(api|secret|access)[_-]?key|token|secret|password|authorization", re.IGNORECASE
)


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
    for detail in error.errors(include_url=False):
        if ignore_missing and detail["type"] == "missing":
            continue
        steps = detail["loc"]
        mistakes.add(node.place_of(steps), _problem(detail, kind))


def unknown_field(name: str, known: Collection[str]) -> str:
    """Return the problem of an unknown field of a configuration, which may be a secret's."""
    return _misplaced_secret(name) or invalid_values.unknown_field(name, known)


def _misplaced_secret(name: str) -> str | None:
    if _SECRETS.fullmatch(name):
        return "a secret is never written here: remove it, and put it into the environment"
    return None


def _problem(error: ErrorDetails, kind: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return _misplaced_secret(str(error["loc"][-1])) or problem_of(error, kind)
    if error["type"] != "string_pattern_mismatch":
        return problem_of(error, kind)
    # Of the patterns there are, only that of a model id has a slash.
    if "/" in error["ctx"]["pattern"]:
        return f"must be `provider/name`, such as `reference/socratic`, not {shown(error['input'])}"
    return f"must be one line without spaces at its ends, not {shown(error['input'])}"
