"""Calls servers that speak OpenAI's chat completions.

`openai/gpt-5`, `ollama/llama3.2` and the like go to their provider's usual address, or to the
model's base_url; `openai-compatible/NAME` goes to its base_url, which is required.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.http_options import OpenAIOptions
from socratic_bench.providers.http_providers import OpenAISpec
from socratic_bench.providers.options import read_options
from socratic_bench.providers.presets import Preset
from socratic_bench.providers.registry import spec_of
from socratic_runner.models.access import Access
from socratic_runner.models.chat import chat, system_message
from socratic_runner.models.http.client import Wire, open_connection, require_key
from socratic_runner.models.http.keys import Key
from socratic_runner.models.openai.replies import OpenAIReading


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    require_key(model, access)


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for `model`; it connects at its first call."""
    options = read_options(model, OpenAIOptions)
    preset = cast("OpenAISpec", spec_of(model)).preset
    wire = Wire(
        path="/chat/completions",
        headers=_headers,
        body=partial(_body, options.name_at_service(model), preset, options),
        reading=OpenAIReading,
        streamed=options.stream,
    )
    return open_connection(model, access, wire)


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
