"""Keys: read from the environment, sent to one place, and shown to nobody."""

from __future__ import annotations

import json
import os
import re
from typing import Final
from urllib.parse import quote

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import MissingCredential

HIDDEN: Final = "[hidden]"

_IN_A_HEADER: Final = re.compile(r"[\x21-\x7e]+")
_SENT_ALONG: Final = re.compile(
    r"""(?ix) \b(authorization|x-api-key|api-key)\b ["']? \s* [:=] \s* ["']?
        (?: (?:bearer|basic) \s+ )? [^\s"',;}\]]+"""
)
_BEARER: Final = re.compile(r"""(?i)\bbearer\s+(?=\S*\d)[^\s"',;}\]]{8,}""")


class Key:
    """A key. Only `reveal` shows it."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        as_json = json.dumps(value)[1:-1]
        # The longest first: one form may be a part of another.
        self._forms = sorted({value, as_json, quote(value, safe="")}, key=len, reverse=True)

    def reveal(self) -> str:
        """The key itself, for the one header it is sent in."""
        return self._value

    def hide_in(self, text: str) -> str:
        """`text` with something else wherever the key stood."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"Key({HIDDEN})"


def hide(text: str, key: Key | None) -> str:
    """`text` without `key`, and without what looks like a header that carries one."""
    if key is not None:
        text = key.hide_in(text)
    return _BEARER.sub(f"Bearer {HIDDEN}", _SENT_ALONG.sub(rf"\1: {HIDDEN}", text))


def read_key(model: TutorModel, variable: str) -> Key:
    """The key in an environment variable.

    Raises MissingCredential if there is none, or one that no header can carry.
    """
    value = os.environ.get(variable, "")
    if not value:
        raise MissingCredential(
            f"model {model.id}: the environment variable {variable} is not set; put the key there, "
            "and not into the configuration"
        )
    if not _IN_A_HEADER.fullmatch(value):
        raise MissingCredential(
            f"model {model.id}: the environment variable {variable} holds something that is no "
            "key: there is white space, a line break, or another character in it that cannot be "
            "sent; set it anew"
        )
    return Key(value)
