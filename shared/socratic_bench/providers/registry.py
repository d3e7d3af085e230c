"""The providers by name, the first part of their models' ids: built-in and installed ones.

A distribution offers a ProviderSpec under the entry point group `socratic_bench.providers`, and the
client that speaks to it under `socratic_runner.clients`, both by the name of the provider. The
built-in providers come first: no distribution can replace one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import BrokenPlugin, InvalidInput, UnknownProvider
from socratic_bench.plugins import found
from socratic_bench.providers.bedrock import BEDROCK
from socratic_bench.providers.http_options import HttpOptions
from socratic_bench.providers.http_providers import HTTP_PROVIDERS
from socratic_bench.providers.in_process import LOCAL, REFERENCE
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.recordings import REPLAY
from socratic_bench.providers.spec import Destination, ProviderSpec

GROUP: Final = "socratic_bench.providers"

_BUILT_IN: Final[dict[str, ProviderSpec]] = {
    "bedrock": BEDROCK,
    "local": LOCAL,
    "reference": REFERENCE,
    "replay": REPLAY,
    **HTTP_PROVIDERS,
}


def provider_names() -> tuple[str, ...]:
    """The names of all providers in alphabetical order; none of another distribution is loaded."""
    return tuple(sorted({*_BUILT_IN, *found(GROUP)}))


def spec_of(model: TutorModel) -> ProviderSpec:
    """The provider of `model`.

    Raises UnknownProvider, naming the known ones, or BrokenPlugin, naming the distribution.
    """
    spec = _BUILT_IN.get(model.provider) or _installed(model.provider)
    if spec is None:
        raise UnknownProvider(
            f"model {model.id}: there is no provider {model.provider!r}; "
            f"there is {', '.join(provider_names())}"
        )
    return spec


def check_model(
    model: TutorModel, *, base_folder: Path | None = None, key_variable: str | None = None
) -> None:
    """Whether what is said about `model` is right, found out early and cheaply.

    `key_variable` is the environment variable that a configuration names for its key. Raises
    UnknownProvider, BrokenPlugin, and InvalidInput for a model that its provider does not have, an
    option it does not know, a wrong value of an option, or a wrong address.
    """
    spec = spec_of(model)
    spec.check(model, base_folder)
    if key_variable is not None and not issubclass(spec.options, HttpOptions):
        raise InvalidInput(
            f"model {model.id}: {model.provider} models are sent no key; remove {KEY_OPTION}"
        )


def fingerprint(model: TutorModel, *, base_folder: Path | None = None) -> str | None:
    """A hash of the files that decide about the responses of `model`; None where there are none.

    Raises what `check_model` raises.
    """
    return spec_of(model).fingerprint(model, base_folder)


def destination(model: TutorModel) -> Destination | None:
    """Where the calls to `model` go; None where that is not for a configuration to say.

    Raises what `check_model` raises.
    """
    return spec_of(model).destination(model)


def account_scope(model: TutorModel) -> str:
    """What the limits of an account are about: the model, where it is, and by which key."""
    spec = _known(model.provider)
    where = None if spec is None else spec.destination(model)
    scope = model.id if where is None else f"{model.id} at {where.url}"
    return scope if model.endpoint is None else f"{scope} as {model.endpoint}"


def is_reference(model: TutorModel) -> bool:
    """Whether this is an archetype and no real model; False where the provider is not installed."""
    spec = _known(model.provider)
    return spec is not None and spec.reference


def is_free(model: TutorModel) -> bool:
    """Whether no call to `model` can cost money; False where the provider is not installed."""
    spec = _known(model.provider)
    return spec is not None and spec.free


def simulated_latency_ms(model: TutorModel) -> int:
    """The latency that `model` pretends to have; 0 where the provider is not installed."""
    spec = _known(model.provider)
    return 0 if spec is None else spec.simulated_latency_ms(model)


@cache
def _known(name: str) -> ProviderSpec | None:
    """The provider called `name`; None where a stored plan names one that cannot be loaded here."""
    try:
        return _BUILT_IN.get(name) or _installed(name)
    except BrokenPlugin:
        return None


@cache
def _installed(name: str) -> ProviderSpec | None:
    plugin = found(GROUP).get(name)
    if plugin is None:
        return None
    spec = plugin.load()
    if not isinstance(spec, ProviderSpec):
        raise plugin.broken("is no ProviderSpec: see socratic_bench.providers.spec")
    return spec
