"""Reads the JSON documents of a file that is no JSON Lines: arrays, or objects over many lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from socratic_bench.errors import InvalidInput
from socratic_cli.speakers import SPEAKER_FIELDS

MOST_BYTES: Final = 64 * 1024 * 1024
"""The greatest size of JSON that is read as a whole."""

_LIKE_JSON: Final = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\"\]]|$))")
_BLANK: Final = re.compile(r"\s*")


class NoDocuments(ValueError):
    """The text is no JSON; the message says why."""


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{name} is not a number in JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant)


def looks_like_json(text: str) -> bool:
    """Whether a text begins as an object does, or as an array of objects, arrays or strings."""
    return _LIKE_JSON.match(text) is not None


def records_of(text: str) -> list[Any]:
    """Return the records of a JSON text: the items of an array, or each of several documents.

    An array of a chat's messages beside other documents is a record with `messages`. Raises
    NoDocuments.
    """
    documents = []
    at = _end_of_blank(text, 0)
    try:
        while at < len(text):
            document, at = _DECODER.raw_decode(text, at)
            documents.append(document)
            at = _end_of_blank(text, at)
    except RecursionError:
        raise NoDocuments("nested too deeply") from None
    except ValueError as error:
        raise NoDocuments(str(error)) from None
    if len(documents) == 1:
        return documents[0] if isinstance(documents[0], list) else documents
    return [_as_record(document) for document in documents]


def _as_record(document: object) -> object:
    if isinstance(document, list) and all(_is_message(each) for each in document):
        return {"messages": document}
    return document


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and not SPEAKER_FIELDS.isdisjoint(value)


def _end_of_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def joined(name: str, lines: Iterable[bytes]) -> tuple[list[bytes], Iterable[bytes]]:
    """Return the lines of a document, and those that follow if it is larger than MOST_BYTES."""
    kept: list[bytes] = []
    size = 0
    remaining = iter(lines)
    for line in remaining:
        kept.append(line)
        size += len(line)
        if size > MOST_BYTES:
            return kept, remaining
    return kept, ()


def too_large(name: str) -> InvalidInput:
    """Return the error for a document of more than MOST_BYTES."""
    most = MOST_BYTES // 2**20
    return InvalidInput(f"{name}: a JSON array of more than {most} MB; give one object per line")
