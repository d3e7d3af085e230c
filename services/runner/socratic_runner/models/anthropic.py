"""Anthropic's models, by its Messages API: `anthropic/claude-sonnet-4-5` and the like."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_runner.models.anthropic_replies import AnthropicReading
from socratic_runner.models.chat import chat
from socratic_runner.models.http.client import Place, Wire, access, open_connection, place
from socratic_runner.models.http.keys import Key
from socratic_runner.models.http.options import HttpOptions
from socratic_runner.models.options import read_options

BASE_URL: Final = "https://api.anthropic.com"
KEY_VARIABLE: Final = "ANTHROPIC_API_KEY"
API_VERSION: Final = "2023-06-01"


class AnthropicOptions(HttpOptions):
    """The options of a model that is spoken to by Anthropic's Messages API."""

    fixed: ClassVar[frozenset[str]] = HttpOptions.fixed | {"system"}
    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """What is not sent, for a model that would refuse it."""


def check_model(model: TutorModel, base_folder: Path | None) -> None:
    """Raise InvalidInput for a wrong option or base_url."""
    _place(model)


def check_access(model: TutorModel) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    access(model, _place(model))


def open_client(model: TutorModel, base_folder: Path | None) -> ModelClient:
    """A client for `model`; it connects when it is first asked."""
    options = read_options(model, AnthropicOptions)
    wire = Wire(
        path="/v1/messages",
        headers=_headers,
        body=partial(_body, model.id.partition("/")[2], options),
        reading=AnthropicReading,
        streamed=options.stream,
    )
    return open_connection(model, _place(model), wire)


def fingerprint(model: TutorModel, base_folder: Path | None) -> str | None:
    """None: no file of the configuration decides about these responses."""
    return None


def _place(model: TutorModel) -> Place:
    options = read_options(model, AnthropicOptions)
    return place(model, BASE_URL, KEY_VARIABLE, options.api_key_env)


def _headers(key: Key | None) -> dict[str, str]:
    version = {"anthropic-version": API_VERSION}
    return version if key is None else {**version, "x-api-key": key.reveal()}


def _body(name: str, options: AnthropicOptions, question: Question) -> dict[str, Any]:
    parameters = question.parameters
    sampling = {"temperature": parameters.temperature, "top_p": parameters.top_p}
    return {
        "model": name,
        "system": question.system_prompt,
        "messages": chat(question),
        "max_tokens": parameters.max_tokens,
        "stream": options.stream,
        **{
            name: value
            for name, value in sampling.items()
            if value is not None and name not in options.omit
        },
        **options.extra_body,
    }
