"""The providers that are spoken to over HTTP: OpenAI's form, and Anthropic's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.base_urls import base_url, origin
from socratic_bench.providers.http_options import AnthropicOptions, HttpOptions, OpenAIOptions
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.options import read_options
from socratic_bench.providers.presets import PRESETS, Preset
from socratic_bench.providers.spec import Destination, ProviderSpec

ANTHROPIC: Final = Preset("https://api.anthropic.com", "ANTHROPIC_API_KEY")


def _check(options: type[HttpOptions], preset: Preset, model: TutorModel, _: Path | None) -> None:
    if KEY_OPTION in model.options:
        raise InvalidInput(
            f"model {model.id}: its plan names an environment variable, which is not read for a "
            "plan; submit the configuration anew, and have the operator of the services bind the "
            "key to its origin by SOCRATIC_ENDPOINTS"
        )
    read_options(model, options)
    _destination(preset, model)


def _destination(preset: Preset, model: TutorModel) -> Destination:
    url = base_url(model, preset.base_url)
    own = preset.base_url is not None and origin(url) == origin(preset.base_url)
    return Destination(url, own=own, usual_key=preset.key_variable if own else None)


def _spec(options: type[HttpOptions], preset: Preset) -> ProviderSpec:
    return ProviderSpec(options, partial(_check, options, preset), partial(_destination, preset))


HTTP_PROVIDERS: Final = {
    "anthropic": _spec(AnthropicOptions, ANTHROPIC),
    **{name: _spec(OpenAIOptions, preset) for name, preset in PRESETS.items()},
}
