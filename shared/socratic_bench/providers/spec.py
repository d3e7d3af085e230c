"""The spec of a provider, without code that uses a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.options import Options


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of calls to a model."""

    url: str
    """The base URL, without a slash at its end."""

    own: bool
    """Whether this is the provider's own origin."""

    usual_key: str | None = None
    """The environment variable of the provider's own key; None: no key, or another origin."""

    signed: bool = False
    """Whether AWS credentials sign the calls, in place of a key."""

    @property
    def origin(self) -> str:
        """The scheme, host and port, which a key is bound to."""
        return origin(self.url)


def _no_file(_model: TutorModel, _base_folder: Path | None) -> str | None:
    return None


def _no_latency(_model: TutorModel) -> int:
    return 0


def _no_address(_model: TutorModel) -> Destination | None:
    return None


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One provider of models. The runner has its client."""

    options: type[Options]
    """The options of its models."""

    check: Callable[[TutorModel, Path | None], None]
    """Raises InvalidInput for a wrong id, option or address."""

    destination: Callable[[TutorModel], Destination | None] = _no_address
    """Returns the destination of calls; None: no network, or an address that only the provider's
    library knows. Raises InvalidInput for a wrong base_url."""

    fingerprint: Callable[[TutorModel, Path | None], str | None] = _no_file
    """Returns a hash of the files that decide the responses; None without such files."""

    free: bool = False
    """Whether its models answer from this machine, so that no call can cost money."""

    reference: bool = False
    """Whether its models are archetypes for comparison, no real models."""

    simulated_latency_ms: Callable[[TutorModel], int] = _no_latency
    """Returns the simulated latency of a model in milliseconds; 0 for every real model."""

    @property
    def reads_files(self) -> bool:
        """Whether responses depend on files of the runner's machine."""
        return self.fingerprint is not _no_file
