"""The built-in and installed providers by name, the first part of their models' ids.

A distribution offers a ProviderSpec under the entry point group `socratic_bench.providers`, and its
client under `socratic_runner.clients`, both by the provider's name. No distribution can replace a
built-in provider.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.errors import BrokenPlugin, InvalidInput, UnknownProvider
from socratic_bench.plugins import found
from socratic_bench.providers.built_in import (
    BEDROCK,
    HTTP_PROVIDERS,
    IMPORTED,
    IMPORTED_PROVIDER,
    LOCAL,
    REFERENCE,
    HttpOptions,
)
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.recordings import REPLAY
from socratic_bench.providers.spec import Destination, ProviderSpec

GROUP: Final = "socratic_bench.providers"

_BUILT_IN: Final[dict[str, ProviderSpec]] = {
    "bedrock": BEDROCK,
    IMPORTED_PROVIDER: IMPORTED,
    "local": LOCAL,
    "reference": REFERENCE,
    "replay": REPLAY,
    **HTTP_PROVIDERS,
}


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers that can be called, sorted, without loading installed
    ones.
    """
    return tuple(sorted({*_BUILT_IN, *found(GROUP)} - {IMPORTED_PROVIDER}))


def spec_of(model: TutorModel) -> ProviderSpec:
    """Return the provider of `model`.

    Raises UnknownProvider, naming the known ones, or BrokenPlugin, naming the distribution.
    """
    spec = _BUILT_IN.get(model.provider) or _installed(model.provider)
    if spec is None:
        raise UnknownProvider(
            f"model {model.id}: unknown provider {model.provider!r}; "
            f"the providers are {', '.join(provider_names())}"
        )
    return spec


def check_model(
    model: TutorModel, *, base_folder: Path | None = None, key_variable: str | None = None
) -> None:
    """Check the options and the address of `model`, before any call.

    `key_variable` is the environment variable that a configuration names for its key. Raises
    UnknownProvider, BrokenPlugin, and InvalidInput for a model, an option, a value or an address
    that its provider does not accept.
    """
    spec = spec_of(model)
    spec.check(model, base_folder)
    if key_variable is not None and not issubclass(spec.options, HttpOptions):
        raise InvalidInput(
            f"model {model.id}: {model.provider} models take no key; remove {KEY_OPTION}"
        )


def fingerprint(model: TutorModel, *, base_folder: Path | None = None) -> str | None:
    """Return a hash of the files that decide the responses of `model`; None without such files.

    Raises the errors of `check_model`.
    """
    return spec_of(model).fingerprint(model, base_folder)


def destination(model: TutorModel) -> Destination | None:
    """Return the destination of calls to `model`; None where a configuration cannot choose one.

    Raises the errors of `check_model`.
    """
    return spec_of(model).destination(model)


def account_scope(model: TutorModel) -> str:
    """Return the name that an account's limits apply to: of model, address and key."""
    spec = _known(model.provider)
    where = None if spec is None else spec.destination(model)
    scope = model.own_id if where is None else f"{model.own_id} at {where.url}"
    return scope if model.endpoint is None else f"{scope} as {model.endpoint}"


def usual_price(model: TutorModel) -> Price | None:
    """Return what the tokens of `model` cost where its calls usually go: half of it in batches."""
    spec = _known(model.provider)
    batched = spec is not None and issubclass(spec.options, HttpOptions)
    if model.price is None or not (batched and model.options.get("batch") is True):
        return model.price
    return model.price.halved


def is_reference(model: TutorModel) -> bool:
    """Whether the model is an archetype, no real model; False for a missing provider."""
    spec = _known(model.provider)
    return spec is not None and spec.reference


def is_imported(model_id: str) -> bool:
    """Whether the answers of a model came with a file, and no call asked for them."""
    return model_id.startswith(f"{IMPORTED_PROVIDER}/")


def is_free(model: TutorModel) -> bool:
    """Whether no call to `model` can cost money; False for a missing provider."""
    spec = _known(model.provider)
    return spec is not None and spec.free


def simulated_latency_ms(model: TutorModel) -> int:
    """Return the simulated latency of `model`; 0 for a missing provider."""
    spec = _known(model.provider)
    return 0 if spec is None else spec.simulated_latency_ms(model)


@cache
def _known(name: str) -> ProviderSpec | None:
    """Return the provider called `name`; None if this installation cannot load it."""
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
        raise plugin.broken("must be a socratic_bench.providers.spec.ProviderSpec")
    return spec
