"""Whatever speaks OpenAI's chat completions: OpenAI itself, other services, servers of one's own.

`openai/gpt-5`, `ollama/llama3.2` and the like go to their provider's usual address, or to the
model's base_url; `openai-compatible/NAME` goes to its base_url, which it has to have.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_runner.models.chat import chat, system_message
from socratic_runner.models.http.client import Place, Wire, access, open_connection, place
from socratic_runner.models.http.keys import Key
from socratic_runner.models.http.options import HttpOptions
from socratic_runner.models.openai_replies import OpenAIReading
from socratic_runner.models.options import read_options
from socratic_runner.models.presets import PRESETS, Preset


class OpenAIOptions(HttpOptions):
    """The options of a model that speaks OpenAI's chat completions."""

    omit: list[Literal["seed", "stream_options", "temperature", "top_p"]] = Field(
        default_factory=list
    )
    """What is not sent, for a model that would refuse it."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What this model calls the limit of output tokens; None: what its provider calls it."""


def check_model(model: TutorModel, base_folder: Path | None) -> None:
    """Raise InvalidInput for a wrong option or base_url."""
    _place(model)


def check_access(model: TutorModel) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    access(model, _place(model))


def open_client(model: TutorModel, base_folder: Path | None) -> ModelClient:
    """A client for `model`; it connects when it is first asked."""
    options = read_options(model, OpenAIOptions)
    wire = Wire(
        path="/chat/completions",
        headers=_headers,
        body=partial(_body, model.id.partition("/")[2], PRESETS[model.provider], options),
        reading=OpenAIReading,
        streamed=options.stream,
    )
    return open_connection(model, _place(model), wire)


def fingerprint(model: TutorModel, base_folder: Path | None) -> str | None:
    """None: no file of the configuration decides about these responses."""
    return None


def _place(model: TutorModel) -> Place:
    preset = PRESETS[model.provider]
    options = read_options(model, OpenAIOptions)
    return place(model, preset.base_url, preset.key_variable, options.api_key_env)


def _headers(key: Key | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}


def _body(name: str, preset: Preset, options: OpenAIOptions, question: Question) -> dict[str, Any]:
    parameters = question.parameters
    optional: dict[str, tuple[str, Any]] = {
        "temperature": ("temperature", parameters.temperature),
    }
    if parameters.top_p is not None:
        optional["top_p"] = "top_p", parameters.top_p
    if preset.seed_field is not None:
        optional["seed"] = preset.seed_field, question.seed
    if options.stream and preset.stream_options:
        optional["stream_options"] = "stream_options", {"include_usage": True}
    sent = [field for option, field in optional.items() if option not in options.omit]
    return {
        "model": name,
        "messages": [system_message(question), *chat(question)],
        "stream": options.stream,
        options.max_tokens_field or preset.max_tokens_field: parameters.max_tokens,
        **dict(sent),
        **options.extra_body,
    }
