"""The providers over HTTP: OpenAI's API, and Anthropic's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.endpoints.base_urls import base_url, origin
from socratic_bench.providers.http_options import AnthropicOptions, HttpOptions, OpenAIOptions
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.options import read_options
from socratic_bench.providers.presets import PRESETS, Preset
from socratic_bench.providers.spec import Destination, ProviderSpec

ANTHROPIC: Final = Preset("https://api.anthropic.com", "ANTHROPIC_API_KEY")


def _check(options: type[HttpOptions], preset: Preset, model: TutorModel, _: Path | None) -> None:
    if KEY_OPTION in model.options:
        raise InvalidInput(
            f"model {model.id}: its plan names an environment variable, which services do not "
            "read; submit the configuration again, and have the operator of the services bind the "
            "key to its origin by SOCRATIC_ENDPOINTS"
        )
    read_options(model, options)
    _destination(preset, model)


def _destination(preset: Preset, model: TutorModel) -> Destination:
    url = base_url(model, preset.base_url)
    own = preset.base_url is not None and origin(url) == origin(preset.base_url)
    return Destination(url, own=own, usual_key=preset.key_variable if own else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISpec(ProviderSpec):
    """A provider with OpenAI's chat completions, which the runner's client for them calls."""

    preset: Preset
    """Its differences from others."""


def openai_spec(preset: Preset) -> OpenAISpec:
    """Return the spec of a service with OpenAI's chat completions."""
    return OpenAISpec(
        options=OpenAIOptions,
        check=partial(_check, OpenAIOptions, preset),
        destination=partial(_destination, preset),
        preset=preset,
    )


HTTP_PROVIDERS: Final[dict[str, ProviderSpec]] = {
    "anthropic": ProviderSpec(
        AnthropicOptions,
        partial(_check, AnthropicOptions, ANTHROPIC),
        partial(_destination, ANTHROPIC),
    ),
    **{name: openai_spec(preset) for name, preset in PRESETS.items()},
}
