"""What planning needs to know about model providers, which live on a higher floor."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from socratic_bench.domain.experiment.manifest import TutorModel


class ModelCatalogue(Protocol):
    """Knows the providers there are, and what each wants to be told about a model.

    Neither method calls a model or uses the network. `base_folder` is what relative paths in a
    model's options start from; None where the configuration may name no files.
    """

    @property
    def providers(self) -> Collection[str]:
        """The names of the providers: what stands before the slash of a model id."""
        ...

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        """Raise InvalidInput, in a sentence, if a run of this model could not even begin.

        `key_variable` is the environment variable that the configuration names for its key.
        Raises UnknownProvider where nobody registered its provider.
        """
        ...

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        """A hash of the files that decide about this model's responses, such as a recording.

        None where there are none. It becomes the option `sha256` of the model, so that the name of
        the manifest depends on what the files hold. Raises InvalidInput if they cannot be read.
        """
        ...
