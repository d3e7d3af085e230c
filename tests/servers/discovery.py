"""Finds servers for tests, and starts them if needed.

The sources, in this order: an address in the environment; the standard local port; Docker; a
private process of an installed server. A started server stops when this process ends.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from tests.servers.ending import ENDING

Check = Callable[[str], None]
"""Whether tests can use the server at an address. Blocks briefly; raises NotHere where not."""

DOCKER_SECONDS = 3
"""How long a Docker daemon may take to answer before it counts as absent."""

START_SECONDS = 60.0
"""How long a server that was started may take until it can be used."""

TRUST_SECONDS = 30.0
"""How long a server counts as usable after it was checked."""


class NotHere(Exception):
    """A source has no server; the message says why, without a password."""


@dataclass(frozen=True)
class Source:
    """A possible source of a server."""

    name: str
    find: Callable[[ExitStack], str]
    """The address of a server there, to be stopped by the stack; raises NotHere."""


class Server:
    """A server, found when a test first needs it, and again once it is unusable."""

    def __init__(
        self,
        name: str,
        sources: Sequence[Source],
        *,
        check: Check | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`check` looks now and then whether the server that was found can still be used."""
        self._name = name
        self._sources = sources
        self._check = check
        self._clock = clock
        self._address: str | None = None
        self._checked = 0.0
        self._reason: str | None = None
        self._looking = threading.Lock()

    def address(self) -> str:
        """The server's address. Where there is none the test that asks is skipped, or fails in CI.

        Blocks, for as long as starting a server takes: within a loop, call it in a thread.
        """
        with self._looking:
            if self._address is not None and not self._usable(self._address):
                self._address = None
            if self._address is None and self._reason is None:
                self._look()
        return self._address or missing(f"no {self._name} for this test. {self._reason}")

    def _usable(self, address: str) -> bool:
        if self._check is None or self._clock() - self._checked < TRUST_SECONDS:
            return True
        try:
            self._check(address)
        except NotHere as error:
            print(f"The {self._name} can no longer be used: {error}.", file=sys.__stderr__)
            return False
        self._checked = self._clock()
        return True

    def _look(self) -> None:
        reasons = []
        for source in self._sources:
            with ExitStack() as started:
                try:
                    self._address = source.find(started)
                except NotHere as error:
                    reasons.append(f"{source.name}: {error}")
                else:
                    self._checked = self._clock()
                    ENDING.callback(started.pop_all().close)
                    return
        self._reason = "; ".join(reasons)


def missing(reason: str) -> NoReturn:
    """Skip the test that is running; with CI=true fail it, since there nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI=true, and {reason}", pytrace=False)
    pytest.skip(reason)


def in_environment(variable: str, check: Check) -> Source:
    """The server whose address is in the environment; one that cannot be used is a mistake."""

    def find(_: ExitStack) -> str:
        address = os.environ.get(variable)
        if not address:
            raise NotHere("not set")
        try:
            check(address)
        except NotHere as error:
            pytest.fail(f"{variable} names a server that cannot be used: {error}", pytrace=False)
        return address

    return Source(variable, find)


def at_standard_port(name: str, addresses: Sequence[str], check: Check) -> Source:
    """The first of these addresses where a server can be used."""

    def find(_: ExitStack) -> str:
        reasons = []
        for address in addresses:
            try:
                check(address)
            except NotHere as error:
                reasons.append(str(error))
            else:
                return address
        raise NotHere(", ".join(dict.fromkeys(reasons)))

    return Source(name, find)


def in_docker(
    image: str,
    port: int,
    environment: dict[str, str],
    address: Callable[[str, int], str],
    check: Check,
) -> Source:
    """A container of `image`; `address` is made of the host and port that reach its `port`."""

    def find(started: ExitStack) -> str:
        _require_docker()
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(image, env=environment, ports=[port])
        try:
            started.enter_context(container)
            host, mapped = container.get_container_host_ip(), container.get_exposed_port(port)
        except Exception as error:
            raise NotHere(f"{image} did not start: {error}") from error
        found = address(host, int(mapped))
        wait_for(found, check)
        return found

    return Source("Docker", find)


def wait_for(address: str, check: Check) -> None:
    """Wait until a server that was just started can be used. Blocks."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            check(address)
        except NotHere as error:
            if time.monotonic() > deadline:
                raise NotHere(f"it did not come up: {error}") from error
            time.sleep(0.1)
        else:
            return


def _require_docker() -> None:
    import docker

    with warnings.catch_warnings():
        # The client forgets to close the socket of a connection that was refused.
        warnings.simplefilter("ignore", ResourceWarning)
        answers = _answers(docker.from_env)
        gc.collect()
    if not answers:
        raise NotHere("no daemon answers")


def _answers(connect: Callable[..., Any]) -> bool:
    try:
        with closing(connect(timeout=DOCKER_SECONDS)) as client:
            return bool(client.ping())
    except Exception:  # noqa: BLE001 - whatever it is, there is no daemon to use
        return False
