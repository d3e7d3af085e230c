"""A catalogue of model providers for tests: a few names, and recordings that are files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidConfig, InvalidInput, UnknownProvider
from socratic_bench.planning.config_file.config import BenchmarkConfig, parse_config


class FewProviders:
    providers = ("bedrock", "reference", "replay")

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        if model.provider not in self.providers:
            raise UnknownProvider(f"there is no provider {model.provider}")
        if model.provider == "replay":
            self._recording(model, base_folder)

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        if model.provider != "replay":
            return None
        return hashlib.sha256(self._recording(model, base_folder).read_bytes()).hexdigest()

    def _recording(self, model: TutorModel, base_folder: Path | None) -> Path:
        if base_folder is None:
            raise InvalidInput("a recording needs a folder")
        path = base_folder / model.id.partition("/")[2]
        if not path.is_file():
            raise InvalidInput(f"there is no recording {path.name}")
        return path


def config_of(
    text: str, name: str = "benchmark.yaml", base_folder: Path | None = None, **others: Any
) -> BenchmarkConfig:
    return parse_config(
        text, name=name, base_folder=base_folder, catalogue=FewProviders(), **others
    )


def mistakes_of(
    text: str, name: str = "benchmark.yaml", base_folder: Path | None = None, **others: Any
) -> list[str]:
    """The mistakes in a configuration, as a person reads them; none if there is none."""
    try:
        config_of(text, name, base_folder, **others)
    except InvalidConfig as error:
        return str(error).splitlines()
    return []
