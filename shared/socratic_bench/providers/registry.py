"""The providers there are, by the first part of their models' ids."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import InvalidInput, UnknownProvider
from socratic_bench.providers.bedrock import BEDROCK
from socratic_bench.providers.http_options import HttpOptions
from socratic_bench.providers.http_providers import HTTP_PROVIDERS
from socratic_bench.providers.in_process import LOCAL, REFERENCE
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.recordings import REPLAY
from socratic_bench.providers.spec import Destination, ProviderSpec

PROVIDERS: Final[dict[str, ProviderSpec]] = {
    "bedrock": BEDROCK,
    "local": LOCAL,
    "reference": REFERENCE,
    "replay": REPLAY,
    **HTTP_PROVIDERS,
}


WITHOUT_CHARGE: Final = frozenset({"local", "reference", "replay"})
"""The providers that answer from this machine: no call to them can cost money."""


def check_model(
    model: TutorModel, *, base_folder: Path | None = None, key_variable: str | None = None
) -> None:
    """Whether what is said about `model` is right, found out early and cheaply.

    `key_variable` is the environment variable that a configuration names for its key. Raises
    UnknownProvider, and InvalidInput for a model that its provider does not have, an option it does
    not know, a wrong value of an option, or a wrong address.
    """
    spec = _spec(model)
    spec.check(model, base_folder)
    if key_variable is not None and not issubclass(spec.options, HttpOptions):
        raise InvalidInput(
            f"model {model.id}: {model.provider} models are sent no key; remove {KEY_OPTION}"
        )


def fingerprint(model: TutorModel, *, base_folder: Path | None = None) -> str | None:
    """A hash of the files that decide about the responses of `model`; None where there are none.

    Raises what `check_model` raises.
    """
    return _spec(model).fingerprint(model, base_folder)


def destination(model: TutorModel) -> Destination | None:
    """Where the calls to `model` go; None where that is not for a configuration to say.

    Raises what `check_model` raises.
    """
    return _spec(model).destination(model)


def account_scope(model: TutorModel) -> str:
    """What the limits of an account are about: the model, where it is, and by which key."""
    if model.provider not in PROVIDERS:
        return model.id
    where = destination(model)
    scope = model.id if where is None else f"{model.id} at {where.url}"
    return scope if model.endpoint is None else f"{scope} as {model.endpoint}"


def _spec(model: TutorModel) -> ProviderSpec:
    spec = PROVIDERS.get(model.provider)
    if spec is None:
        raise UnknownProvider(
            f"model {model.id}: there is no provider {model.provider!r}; "
            f"there is {', '.join(sorted(PROVIDERS))}"
        )
    return spec
