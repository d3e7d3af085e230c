"""The reader of `SOCRATIC_ENDPOINTS`. Its errors repeat names alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_validator
from pydantic import model_validator as checked_model

from socratic_bench.errors import InvalidSettings
from socratic_bench.invalid_values import problem_of
from socratic_bench.providers.endpoints.base_urls import origin, url_problem
from socratic_bench.providers.endpoints.endpoint import SETTING, Endpoint, KeySource
from socratic_bench.providers.key_variables import is_key_variable

_LARGEST: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    origin: str
    key_variable: str | None = None
    secret: SecretStr | None = None
    aws: bool = False

    @field_validator("origin")
    @classmethod
    def _is_an_origin(cls, url: str) -> str:
        problem = url_problem(url)
        if problem is None and url.rstrip("/").count("/") > 2:
            problem = "holds a path: a key is bound to the whole of a scheme, host and port"
        if problem is not None:
            raise ValueError(problem)
        return origin(url)

    @field_validator("key_variable")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not is_key_variable(name):
            raise ValueError(
                "must be the name of an environment variable that does not begin with AWS_ or "
                "SOCRATIC_; use `aws` for AWS credentials"
            )
        return name

    @checked_model(mode="after")
    def _has_one_key(self) -> _Entry:
        if sum((self.key_variable is not None, self.secret is not None, self.aws)) > 1:
            raise ValueError("has more than one of key_variable, secret and aws")
        return self

    def endpoint(self, name: str) -> Endpoint:
        key = None
        if self.key_variable is not None or self.secret is not None:
            key = KeySource(self.key_variable, self.secret)
        return Endpoint(name, self.origin, key, self.aws)


def read_endpoints(setting: SecretStr | None) -> tuple[Endpoint, ...]:
    """Return the endpoints of the setting: JSON, or the path of a file with it.

    Raises InvalidSettings, which names the entry and never shows its contents.
    """
    text = "" if setting is None else setting.get_secret_value().strip()
    if not text:
        return ()
    try:
        listed = json.loads(text if text.startswith("{") else _content(text))
    except (ValueError, RecursionError):
        raise InvalidSettings(
            f"{SETTING}: must be JSON: an object of names and endpoints"
        ) from None
    if not isinstance(listed, dict):
        raise InvalidSettings(f"{SETTING}: must be a JSON object of names and endpoints")
    return tuple(_endpoint(name, entry) for name, entry in listed.items())


def _content(path: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no path"
        raise InvalidSettings(f"{SETTING}: cannot read its file: {reason}") from None
    if len(content) > _LARGEST:
        raise InvalidSettings(f"{SETTING}: its file is larger than {_LARGEST // 1_000_000} MB")
    return content.decode("utf-8-sig")


def _endpoint(name: str, entry: Any) -> Endpoint:
    if not _NAME.fullmatch(name):
        raise InvalidSettings(
            f"{SETTING}: each name must have letters, digits, dots, dashes and underscores, "
            "at most 64"
        )
    try:
        return _Entry.model_validate(
            {"origin": entry} if isinstance(entry, str) else entry
        ).endpoint(name)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = "".join(f".{step}" for step in first["loc"] if step in _Entry.model_fields)
        problem = problem_of(first, shows_value=False)
        if first["type"] == "extra_forbidden":
            problem = f"has an unknown field; the fields are {', '.join(_Entry.model_fields)}"
        raise InvalidSettings(f"{SETTING}: {name}{field}: {problem}") from None
