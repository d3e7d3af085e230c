"""Scenario packs that come with the library: named sets of scenarios, as YAML files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.scenario import Name, Scenario
from socratic_bench.errors import InvalidConfig, Mistake

DEFAULT_PACK = "socratic-15"

_FOLDER = "socratic_bench.planning.packs"
_SafeLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class ScenarioPack(BaseModel):
    """The content of a pack's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pack: Name
    version: Annotated[int, Field(ge=1)]
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]


def known_packs() -> tuple[str, ...]:
    """The names of the packs there are, in alphabetical order."""
    names = (entry.name for entry in files(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


@cache
def load_pack(name: str = DEFAULT_PACK) -> tuple[Scenario, ...]:
    """The scenarios of the pack called `name`, in the order of its file.

    Raises InvalidConfig for a pack that does not exist; the message lists those that do.
    """
    if name not in known_packs():
        problem = f"there is no scenario pack {name!r}; there is {', '.join(known_packs())}"
        raise InvalidConfig([Mistake("scenarios", problem)])
    text = files(_FOLDER).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    # _SafeLoader is one of PyYAML's two safe loaders.
    return ScenarioPack.model_validate(yaml.load(text, _SafeLoader)).scenarios  # noqa: S506
