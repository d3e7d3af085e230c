"""What a provider says of itself, without any code that uses a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.endpoints.base_urls import origin
from socratic_bench.providers.options import Options


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the calls to a model go."""

    url: str
    """The base URL, without a slash at its end."""

    own: bool
    """Whether this is the origin that the provider itself is known by."""

    usual_key: str | None = None
    """The environment variable of the provider's own key. None: it has none, or this origin is
    another one."""

    signed: bool = False
    """Whether calls are signed with AWS credentials, and carry no key."""

    @property
    def origin(self) -> str:
        """The scheme, host and port: what a key is bound to."""
        return origin(self.url)


def _no_file(_model: TutorModel, _base_folder: Path | None) -> str | None:
    return None


def _no_latency(_model: TutorModel) -> int:
    return 0


def _no_address(_model: TutorModel) -> Destination | None:
    return None


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One provider of models. The client that speaks to it is the runner's."""

    options: type[Options]
    """The options of its models."""

    check: Callable[[TutorModel, Path | None], None]
    """Raises InvalidInput for an id, an option or an address that is wrong."""

    destination: Callable[[TutorModel], Destination | None] = _no_address
    """Where calls go; None: they use no network, or an address that only the provider's library
    knows. Raises InvalidInput for a wrong base_url."""

    fingerprint: Callable[[TutorModel, Path | None], str | None] = _no_file
    """A hash of the files that decide about the responses; None where there are none."""

    free: bool = False
    """Whether its models answer from this machine, so that no call to them can cost money."""

    reference: bool = False
    """Whether its models are archetypes to compare with, and no real models."""

    simulated_latency_ms: Callable[[TutorModel], int] = _no_latency
    """The latency that a model pretends to have, in milliseconds; 0 for every real model."""

    @property
    def reads_files(self) -> bool:
        """Whether responses depend on files of the machine that calls its models."""
        return self.fingerprint is not _no_file
