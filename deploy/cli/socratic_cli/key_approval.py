"""Approves which keys may go to which addresses: by a setting, or by a question.

The author of a configuration may be a stranger. A key goes to its own provider, and to another
address only if SOCRATIC_ENDPOINTS binds it there or the person at the terminal agrees. A file
remembers each approval, as ssh does: the name of the key and the origin, never the key.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import (
    InvalidSettings,
    SocraticBenchError,
    UnlistedEndpoint,
    WrongCredential,
)
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.planning.model_catalogue import CheckAccess
from socratic_bench.providers.endpoints import AWS, SETTING, Endpoints, read_endpoints
from socratic_bench.providers.registry import destination
from socratic_bench.service_settings import load_settings
from socratic_cli.display.terminal import say
from socratic_runner.models.registry import check_access
from socratic_runner.settings import RunnerSettings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def own_endpoints() -> Endpoints:
    """Return the addresses that SOCRATIC_ENDPOINTS lists; others may be called too. Raises
    InvalidSettings.
    """
    return Endpoints(read_endpoints(load_settings(RunnerSettings).endpoints), only_listed=False)


def key_of(model: TutorModel, key_variable: str | None) -> str | None:
    """Return the name of a configuration's own key; None: none, or the usual one."""
    where = destination(model)
    return AWS if where is not None and where.signed else key_variable


def access_check(endpoints: Endpoints) -> CheckAccess:
    """Return the check of whether this process, with these `endpoints`, could call a model.

    It passes a key for another address: `with_approved_keys` asks about that once all else is
    right.
    """
    return partial(_check_access, endpoints)


def _check_access(
    endpoints: Endpoints, model: TutorModel, base_folder: Path | None, key_variable: str | None
) -> None:
    where, key_name = destination(model), key_of(model, key_variable)
    asked = [] if where is None or key_name is None else [(key_name, where.origin)]
    check_access(
        model,
        base_folder=base_folder,
        endpoints=endpoints.allowing(asked),
        key_variable=key_variable,
    )


def wrong_keys(config: BenchmarkConfig) -> Iterator[str]:
    """Yield a sentence for each model whose key is set, but cannot be one."""
    for model in config.manifest.called_models:
        try:
            access_check(own_endpoints())(model, None, config.key_variables.get(model.id))
        except WrongCredential as wrong:
            yield str(wrong)
        except SocraticBenchError:
            continue  # an estimate needs no access


def with_approved_keys(endpoints: Endpoints, config: BenchmarkConfig) -> Endpoints:
    """Return `endpoints` and all approved pairs; asks about new ones.

    Raises UnlistedEndpoint without a terminal, or after a refusal.
    """
    known = KnownKeys(Path(click.get_app_dir("socratic-bench")) / "known-endpoints")
    for model in config.manifest.called_models:
        where = destination(model)
        key_name = key_of(model, config.key_variables.get(model.id))
        if where is None or key_name is None or endpoints.binds(key_name, where):
            continue
        pair = (key_name, where.origin)
        if pair not in known:
            _ask(model, *pair, known.path)
            known.add(*pair)
        endpoints = endpoints.allowing([pair])
    return endpoints


class KnownKeys:
    """The file of approvals: a line each, the name of a key and an origin."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return pair in set(self._read())

    def add(self, key_name: str, origin: str) -> None:
        """Remember a pair; report a failed write, and ask again next time."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(self.path, flags, 0o600), "a", encoding="ascii") as file:
                file.write(f"{key_name} {origin}\n")
        except OSError as error:
            say(f"Note: {self.path} cannot be written ({error.strerror}): you will be asked again.")

    def _read(self) -> Iterator[tuple[str, str]]:
        try:
            with self.path.open(encoding="ascii", errors="replace") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & _OTHERS_WRITE:
                    raise InvalidSettings(
                        f"{self.path} says which keys go where, and others may write it: "
                        f"chmod 600 {self.path}"
                    )
                for line in file:
                    key_name, _, origin = line.strip().partition(" ")
                    yield key_name, origin
        except (FileNotFoundError, NotADirectoryError):
            return


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _ask(model: TutorModel, key_name: str, origin: str, remembered_in: Path) -> None:
    """Raise UnlistedEndpoint unless the person at the terminal agrees."""
    what = "your AWS credentials" if key_name == AWS else f"the key in {key_name}"
    entry = '"aws": true' if key_name == AWS else f'"key_variable": "{key_name}"'
    setting = f'{SETTING}=\'{{"mine": {{"origin": "{origin}", {entry}}}}}\''
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnlistedEndpoint(
            f"model {model.id}: {origin} is to be sent {what}, which needs approval: run "
            f"it once on a terminal, or set {setting}"
        )
    used = "Sign calls with" if key_name == AWS else "Send"
    plain = ", which is not encrypted" if _is_plain(origin) else ""
    question = f"{model.id} is at {origin}{plain}. {used} {what} there? (remembered in "
    if not click.confirm(f"{question}{remembered_in})", default=False, err=True):
        raise UnlistedEndpoint(f"model {model.id}: {origin} is not to be sent {what}")


def _is_plain(origin: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
