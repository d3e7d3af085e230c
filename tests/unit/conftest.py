"""Distributions that are installed for the length of one test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from socratic_bench import plugins
from socratic_bench.planning.config_file import scenario_selection
from socratic_bench.providers import registry as providers
from socratic_bench.scoring import profiles
from socratic_runner.models import registry as clients


class Install(Protocol):
    def __call__(
        self, distribution: str, group: str, name: str, value: str, files: Mapping[str, str]
    ) -> None: ...


CACHES: tuple[Callable[..., object], ...] = (
    plugins.found,
    profiles._installed,
    providers._installed,
    providers._known,
    clients._installed,
    scenario_selection.load_pack,
)


def forget_plugins() -> None:
    for cached in CACHES:
        cached.cache_clear()  # type: ignore[attr-defined]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution in version 1.2 that offers one plug-in, with its files."""

    def install_one(
        distribution: str, group: str, name: str, value: str, files: Mapping[str, str]
    ) -> None:
        folder = tmp_path / distribution
        metadata = folder / f"{distribution}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        monkeypatch.syspath_prepend(folder)
        forget_plugins()

    known = set(sys.modules)
    forget_plugins()
    yield install_one
    forget_plugins()
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
