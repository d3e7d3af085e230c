"""The port to model providers, which live in a higher layer than planning."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from socratic_bench.domain.experiment.manifest import TutorModel


class ModelCatalogue(Protocol):
    """Knows the providers and checks their models, without calls or network.

    Relative paths in a model's options start from `base_folder`; None: the configuration may not
    name files.
    """

    @property
    def providers(self) -> Collection[str]:
        """The names of the providers, the part of a model id before the slash."""
        ...

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        """Raise InvalidInput, with a sentence, if a run of this model could not begin.

        `key_variable` is the environment variable that the configuration names for its key.
        Raises UnknownProvider for an unregistered provider.
        """
        ...

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        """Return a hash of the files that decide this model's responses, such as a recording.

        Returns None without such files. The hash becomes the model's option `sha256`, so that the
        manifest's name depends on the files' contents. Raises InvalidInput for unreadable files.
        """
        ...
