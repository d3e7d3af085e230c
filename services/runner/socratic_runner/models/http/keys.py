"""Keys: read from the environment or a file, sent to one address, and hidden everywhere else."""

from __future__ import annotations

import os
import re
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidSettings, MissingCredential, WrongCredential
from socratic_bench.providers.endpoints import SETTING, KeySource
from socratic_bench.secret_files import secret_in_file

HIDDEN: Final = "[hidden]"

SHORTEST_SECRET: Final = 12
"""Characters. A shorter key is a placeholder for a private server, and may well occur in an
answer."""

_IN_A_HEADER: Final = re.compile(r"[\x21-\x7e]+")
_SENT_ALONG: Final = re.compile(
    r"""(?ix) \b(authorization|x-api-key|api-key)\b ["']? \s* [:=] \s* ["']?
        (?: (?:bearer|basic) \s+ )?+ (?! \[hidden\] ) [^\s"',;}\]]+"""
)
_BEARER: Final = re.compile(r"""(?i)\bbearer\s+(?=\S*\d)[^\s"',;}\]]{8,}""")


def _forms_of(character: str) -> str:
    """The pattern of a character: plain, percent-encoded, or with one of JSON's escapes."""
    code = format(ord(character), "02x")
    plain = re.escape(character) if character.isalnum() else rf"\\?{re.escape(character)}"
    return rf"(?:{plain}|(?i:%{code}|\\u00{code}))"


class Key:
    """A key. Only `reveal` returns it."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        forms = "".join(map(_forms_of, value))
        self._forms = re.compile(forms, re.IGNORECASE if self.is_secret else re.NOFLAG)

    @property
    def is_secret(self) -> bool:
        """False for a placeholder such as `none` or `EMPTY`."""
        return len(self._value) >= SHORTEST_SECRET

    def reveal(self) -> str:
        """Return the key, for the one header that carries it."""
        return self._value

    def hide_in(self, text: str) -> str:
        """Return `text` with the key replaced, in every form that is recognised.

        Each character may be plain, percent-encoded or with an escape of JSON, in any case; a
        placeholder is replaced in its own case only. Other forms stay: in base64, in hexadecimal,
        reversed, split.
        """
        return self._forms.sub(HIDDEN, text)

    def __repr__(self) -> str:
        return f"Key({HIDDEN})"


def hide(text: str, key: Key | None) -> str:
    """Return `text` without `key`, and without values that look like credentials in a header."""
    if key is not None:
        text = key.hide_in(text)
    return _BEARER.sub(f"Bearer {HIDDEN}", _SENT_ALONG.sub(rf"\1: {HIDDEN}", text))


def read_key(model: TutorModel, source: KeySource) -> Key:
    """Return the key from its source.

    Raises MissingCredential for a missing key, and WrongCredential for what cannot be one.
    """
    if source.secret is not None:
        value, where = source.secret.get_secret_value(), f"the secret of its endpoint in {SETTING}"
    else:
        value = _of_environment(model, source.variable or "")
        where = f"the environment variable {source.variable}"
    if not value:
        raise MissingCredential(
            f"model {model.id}: {where} is not set; put the key there, and not into the "
            "configuration"
        )
    if not _IN_A_HEADER.fullmatch(value):
        raise WrongCredential(
            f"model {model.id}: {where} holds no valid key: it contains white space, a line "
            "break, or another character that no header can carry; set it again"
        )
    if wrong := _not_a_key(value):
        raise WrongCredential(f"model {model.id}: {where} holds no valid key: {wrong}")
    return Key(value)


def _not_a_key(value: str) -> str | None:
    """Return the slip that put a text in place of a key; None for what may be one."""
    if value[0] == value[-1] and value[0] in "'\"`":
        return "it has quotation marks around it, as some readers of .env files leave them"
    if re.fullmatch(r"\$[{(].*[)}]|\$[A-Z_]+|%[A-Z_]+%", value):
        return "it is the name of a variable that nothing replaced"
    if value[0] + value[-1] in ("<>", "[]", "{}"):
        return "it is a placeholder"
    if "=" in value and re.match(r"(export|[A-Z][A-Z0-9_]*_(API_)?KEY)=", value):
        return "it begins with the name of a variable"
    return None


def _of_environment(model: TutorModel, variable: str) -> str:
    """Return the value of a variable, or the text of the file that variable + `_FILE` names."""
    try:
        return secret_in_file(variable) or os.environ.get(variable, "")
    except InvalidSettings as error:
        raise MissingCredential(f"model {model.id}: {error}") from None
