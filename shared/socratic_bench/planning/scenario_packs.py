"""Scenario packs: named sets of scenarios in YAML files of the library or of distributions.

A distribution offers a pack under the entry point group `socratic_bench.packs`: the pack's name,
and the package with the file NAME.yaml. No distribution can replace a built-in pack.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from socratic_bench.domain.scenario import Name, Scenario
from socratic_bench.errors import InvalidConfig, Mistake
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.plugins import Plugin, found

DEFAULT_PACK = "socratic-15"

GROUP: Final = "socratic_bench.packs"

_FOLDER = "socratic_bench.planning.packs"
_SafeLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class ScenarioPack(BaseModel):
    """The content of a pack's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pack: Name
    version: Annotated[int, Field(ge=1)]
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]


def known_packs() -> tuple[str, ...]:
    """Return the names of all packs, sorted, without loading installed ones."""
    return tuple(sorted({*_built_in(), *found(GROUP)}))


@cache
def load_pack(name: str = DEFAULT_PACK) -> tuple[Scenario, ...]:
    """Return the scenarios of the pack called `name`, in the order of its file.

    Raises InvalidConfig for an unknown pack, with the names of the known ones, and BrokenPlugin,
    with the distribution's name, for a pack with a missing or wrong file.
    """
    if name in _built_in():
        return _read(files(_FOLDER), name).scenarios
    plugin = found(GROUP).get(name)
    if plugin is None:
        problem = f"unknown scenario pack {name!r}; the packs are {', '.join(known_packs())}"
        raise InvalidConfig([Mistake("scenarios", problem)])
    return _installed(plugin)


def is_built_in(name: str) -> bool:
    """Whether the pack called `name` comes with the library."""
    return name in _built_in()


@cache
def _built_in() -> frozenset[str]:
    names = (entry.name for entry in files(_FOLDER).iterdir())
    return frozenset(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def _installed(plugin: Plugin) -> tuple[Scenario, ...]:
    package = plugin.load()
    try:
        pack = _read(files(package), plugin.name)
    except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
        problem = f"cannot read {plugin.name}.yaml of its package: {_problem(error)}"
        raise plugin.broken(problem) from error
    ids = {scenario.id for scenario in pack.scenarios}
    if pack.pack != plugin.name or len(ids) < len(pack.scenarios):
        raise plugin.broken(f"needs `pack: {plugin.name}`, and a unique id for each scenario")
    return pack.scenarios


def _problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    return mistakes_in(error, ScenarioPack, shows_values=True)


def _read(folder: Traversable, name: str) -> ScenarioPack:
    text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    # _SafeLoader is one of PyYAML's two safe loaders.
    return ScenarioPack.model_validate(yaml.load(text, _SafeLoader))  # noqa: S506
