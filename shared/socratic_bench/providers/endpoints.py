"""Endpoints: the operator of a process binds keys to origins; a plan cannot.

`SOCRATIC_ENDPOINTS` is JSON, or the path of a file with it: a name, the origin, and the key that
this origin may receive.

    {"ours": {"origin": "https://llm.example.org", "key_variable": "OUR_LLM_KEY"},
     "theirs": {"origin": "https://gateway.example.net", "secret": "sk-…"},
     "aws-private": {"origin": "https://vpce-1.example.org", "aws": true},
     "ollama": "http://127.0.0.1:11434"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_validator
from pydantic import model_validator as checked_model

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, InvalidSettings, UnlistedEndpoint
from socratic_bench.invalid_values import problem_of
from socratic_bench.providers.base_urls import origin, url_problem
from socratic_bench.providers.key_variables import is_key_variable
from socratic_bench.providers.spec import Destination

SETTING: Final = "SOCRATIC_ENDPOINTS"

AWS: Final = "aws"
"""The name of AWS credentials among keys, which have the names of their environment variables."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """The source of a key: an environment variable, or the key itself."""

    variable: str | None = None
    secret: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An origin that a process may call, and the key that the origin may receive."""

    name: str
    origin: str
    key: KeySource | None = None
    aws: bool = False
    """Whether clients may sign calls to it with AWS credentials."""

    def takes(self, key_name: str) -> bool:
        """Whether it may receive this key: an environment variable's, or AWS credentials."""
        if key_name == AWS:
            return self.aws
        return self.key is not None and self.key.variable == key_name


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints that a process may call, with their keys."""

    listed: tuple[Endpoint, ...] = ()
    only_listed: bool = True
    """Whether the process may call no other address, as in a service, where planner and operator
    are different people."""

    allowed: frozenset[tuple[str, str]] = frozenset()
    """Further pairs of a key's name and an origin that may receive the key."""

    def allowing(self, pairs: Iterable[tuple[str, str]]) -> Endpoints:
        """Return these endpoints with further pairs of a key's name and an origin."""
        return replace(self, allowed=self.allowed | frozenset(pairs))

    def binds(self, key_name: str, where: Destination) -> bool:
        """Whether that origin may receive the key of this name."""
        if where.own and (where.signed or where.usual_key == key_name):
            return True
        listed = any(each.takes(key_name) for each in self._at(where))
        return listed or (key_name, where.origin) in self.allowed

    def key_for(
        self, model: TutorModel, where: Destination, key_variable: str | None = None
    ) -> KeySource | None:
        """Return the key for calls to `model`, or None for calls without a key.

        `key_variable` is the variable that the configuration named. Raises UnlistedEndpoint where
        the process may not call the address, or not with this key, and InvalidInput for an
        ambiguous key.
        """
        if where.signed:
            if self.binds(AWS, where):
                return None
            raise _unlisted(model, where, '"aws": true', "signed with AWS credentials ")
        if key_variable is not None:
            if self.binds(key_variable, where):
                return KeySource(variable=key_variable)
            field = f'"key_variable": "{key_variable}"'
            raise _unlisted(model, where, field, f"with the key in {key_variable} ")
        if model.endpoint is not None:
            return self._named(model, where).key
        if where.usual_key is not None:
            return KeySource(variable=where.usual_key)
        keys = {each.key for each in self._at(where) if not each.aws}
        if len(keys) > 1:
            raise InvalidInput(
                f"model {model.id}: {SETTING} has several keys for {where.origin}; name one of its "
                "endpoints in the field `endpoint` of the model"
            )
        if not keys and self.only_listed:
            raise _unlisted(model, where, '"key_variable": "…"', "")
        return next(iter(keys), None)

    def _named(self, model: TutorModel, where: Destination) -> Endpoint:
        for each in self._at(where):
            if each.name == model.endpoint and not each.aws:
                return each
        raise UnlistedEndpoint(
            f"model {model.id}: there is no endpoint {model.endpoint!r} with the origin "
            f"{where.origin} in {SETTING}, which the operator of this process sets"
        )

    def _at(self, where: Destination) -> list[Endpoint]:
        return [each for each in self.listed if each.origin == where.origin]


ANYWHERE: Final = Endpoints(only_listed=False)
"""The process may call every address; only the providers' own origins receive keys."""


def _unlisted(model: TutorModel, where: Destination, key: str, how: str) -> UnlistedEndpoint:
    entry = f'{{"NAME": {{"origin": "{where.origin}", {key}}}}}'
    return UnlistedEndpoint(
        f"model {model.id}: {where.origin} may not be called {how}unless the operator of this "
        f"process lists it in {SETTING}, such as {entry}"
    )


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
