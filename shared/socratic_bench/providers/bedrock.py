"""The spec of Amazon Bedrock."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, JsonValue

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.endpoints.base_urls import base_url, origin
from socratic_bench.providers.options import Options, read_options
from socratic_bench.providers.spec import Destination, ProviderSpec

_OWN: Final = re.compile(r"https://bedrock-runtime(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")
"""Its own origins. Other names below amazonaws.com may belong to any AWS customer."""


class BedrockOptions(Options):
    """The options of a model on Bedrock."""

    region: str | None = None
    """The AWS region of the model; None: its ARN's, the environment's or the profile's."""

    stream: bool = True
    """Whether the model streams its reply, which shows the latency of the first token. Some models
    cannot."""

    additional_model_request_fields: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields that the client passes to the model, such as the limit of reasoning."""

    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """Sampling parameters that the client leaves out, since the model does not take them."""


def destination(model: TutorModel) -> Destination | None:
    """Return the destination that replaces the region's own address, or None.

    Raises InvalidInput, without the address, which may hold a password.
    """
    if model.base_url is None:
        return None
    if "@" in model.base_url:
        raise InvalidInput(
            f"model {model.id}: base_url holds a user or a password; AWS credentials belong into "
            "the environment or a profile"
        )
    url = base_url(model, None)
    return Destination(url, own=_OWN.fullmatch(origin(url)) is not None, signed=True)


def _check(model: TutorModel, _: Path | None) -> None:
    read_options(model, BedrockOptions)
    if destination(model) is None and model.endpoint is not None:
        raise InvalidInput(f"model {model.id}: its endpoint needs the base_url that goes with it")


BEDROCK: Final = ProviderSpec(BedrockOptions, _check, destination)
