"""Keys: read from the environment, sent to one place, and shown to nobody."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import MissingCredential
from socratic_bench.providers.endpoints.endpoint import SETTING, KeySource

HIDDEN: Final = "[hidden]"

SHORTEST_SECRET: Final = 12
"""Characters. What is shorter is a word that a server of one's own wants to be sent, and may well
stand in an answer."""

_URL_SAFE: Final = str.maketrans("+/", "-_")
_IN_A_HEADER: Final = re.compile(r"[\x21-\x7e]+")
_SENT_ALONG: Final = re.compile(
    r"""(?ix) \b(authorization|x-api-key|api-key)\b ["']? \s* [:=] \s* ["']?
        (?: (?:bearer|basic) \s+ )?+ (?! \[hidden\] ) [^\s"',;}\]]+"""
)
_BEARER: Final = re.compile(r"""(?i)\bbearer\s+(?=\S*\d)[^\s"',;}\]]{8,}""")


class Key:
    """A key. Only `reveal` shows it."""

    __slots__ = ("_any_case", "_as_is", "_pattern", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        plain = {value, json.dumps(value)[1:-1], quote(value, safe="")}
        self._any_case: frozenset[str] = frozenset()
        self._as_is = frozenset(plain)
        if self.is_secret:
            self._any_case = frozenset(form.lower() for form in {*plain, value.encode().hex()})
            self._as_is = frozenset(_in_base64(value.encode()))
        self._pattern = "|".join((*_either(self._any_case, "(?i:{})"), *_either(self._as_is, "{}")))

    @property
    def is_secret(self) -> bool:
        """Whether it is one that somebody has to guard, and no word such as `none` or `EMPTY`."""
        return len(self._value) >= SHORTEST_SECRET

    def reveal(self) -> str:
        """The key itself, for the one header it is sent in."""
        return self._value

    def hide_in(self, text: str) -> str:
        """`text` with something else wherever the key stood.

        It is found in any case, percent-encoded, escaped as in JSON, in hexadecimal, and in base64
        even as a part of something longer. One that is no secret is found as it is, and no other
        form of a key is found at all: reversed, spread out or encrypted it is not.
        """
        lower = text.lower()
        if any(form in lower for form in self._any_case) or any(
            form in text for form in self._as_is
        ):
            return re.sub(self._pattern, HIDDEN, text)
        return text

    def __repr__(self) -> str:
        return f"Key({HIDDEN})"


def _either(forms: Iterable[str], pattern: str) -> Iterator[str]:
    """The longest first: one form may be a part of another."""
    for form in sorted(forms, key=len, reverse=True):
        yield pattern.format(re.escape(form))


def _in_base64(value: bytes) -> Iterator[str]:
    """What is always the same wherever `value` stands in something that is encoded."""
    for before, mixed in ((0, 0), (1, 2), (2, 3)):
        encoded = b64encode(bytes(before) + value).decode()
        after = (before + len(value)) % 3
        core = encoded[mixed : len(encoded) - (0, 3, 2)[after]]
        yield from {core, core.translate(_URL_SAFE)}


def hide(text: str, key: Key | None) -> str:
    """`text` without `key`, and without what looks like a header that carries one."""
    if key is not None:
        text = key.hide_in(text)
    return _BEARER.sub(f"Bearer {HIDDEN}", _SENT_ALONG.sub(rf"\1: {HIDDEN}", text))


def read_key(model: TutorModel, source: KeySource) -> Key:
    """The key that is found there.

    Raises MissingCredential if there is none, or one that no header can carry.
    """
    if source.secret is not None:
        value, where = source.secret.get_secret_value(), f"the secret of its endpoint in {SETTING}"
    else:
        value = os.environ.get(source.variable or "", "")
        where = f"the environment variable {source.variable}"
    if not value:
        raise MissingCredential(
            f"model {model.id}: {where} is not set; put the key there, and not into the "
            "configuration"
        )
    if not _IN_A_HEADER.fullmatch(value):
        raise MissingCredential(
            f"model {model.id}: {where} holds something that is no key: there is white space, a "
            "line break, or another character in it that cannot be sent; set it anew"
        )
    return Key(value)
