"""Plug-ins: objects that installed distributions offer under an entry point group.

A distribution offers one in its pyproject.toml:

    [project.entry-points."socratic_bench.profiles"]
    my-profile = "my_package.my_module:MyProfile"

The library reads the metadata of the installed distributions when somebody asks for a name that is
not built in, never at import: a command that uses no plug-in starts as fast as without this module.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from socratic_bench.errors import BrokenPlugin, MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def require_package(package: str, *, needed_by: str, extra: str) -> None:
    """Raise MissingExtra if `package` is not installed; the message says how to install it.

    `needed_by` begins the message. `extra` is what pip installs: `socratic-ai-bench[rabbitmq]`.
    """
    if find_spec(package) is None:
        raise MissingExtra(
            f"{needed_by} needs {package}, which is not installed; run: pip install '{extra}'"
        )


def exit_without(package: str, *, needed_by: str, extra: str) -> None:
    """End this process with exit code 2 and the message of MissingExtra if `package` is missing.

    For the first line of a program whose own imports need the package.
    """
    try:
        require_package(package, needed_by=needed_by, extra=extra)
    except MissingExtra as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)


@dataclass(frozen=True, slots=True)
class Plugin:
    """One name of a group, and the distribution that offers it."""

    group: str
    name: str
    offers: tuple[EntryPoint, ...]
    """Usually one; several where distributions offer the same name."""

    @property
    def distribution(self) -> str:
        """The distribution with its version, such as `my-profiles 1.2`; all of them if several."""
        return " and ".join(sorted(map(_distribution, self.offers)))

    def load(self) -> Any:
        """Import the object. Raises BrokenPlugin, naming the distribution."""
        if len(self.offers) > 1:
            raise self.broken("several distributions offer this name: uninstall all but one")
        try:
            return self.offers[0].load()
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise self.broken(f"cannot import {self.offers[0].value}: {said}") from error

    def broken(self, problem: str) -> BrokenPlugin:
        """The error to raise for this plug-in: `problem` says what is wrong with it."""
        return BrokenPlugin(f"{self.group} {self.name!r} of {self.distribution}: {problem}")


@cache
def found(group: str) -> Mapping[str, Plugin]:
    """The plug-ins of a group by name, none of them loaded yet.

    A process reads the metadata once: it sees what is installed later after a restart.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    offers: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for offer in entry_points(group=group):
        offers[offer.name].append(offer)
    return MappingProxyType(
        {name: Plugin(group, name, tuple(offers[name])) for name in sorted(offers)}
    )


def _distribution(offer: EntryPoint) -> str:
    return f"{offer.dist.name} {offer.dist.version}" if offer.dist else "an unnamed distribution"
