"""Anthropic's models over its Messages API: `anthropic/claude-sonnet-4-5` and the like."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.http_options import AnthropicOptions
from socratic_bench.providers.options import read_options
from socratic_runner.models.access import Access
from socratic_runner.models.anthropic.replies import AnthropicReading
from socratic_runner.models.chat import chat
from socratic_runner.models.http.client import Wire, open_connection, require_key
from socratic_runner.models.http.keys import Key

API_VERSION: Final = "2023-06-01"


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra without aiohttp, and MissingCredential without the key."""
    require_key(model, access)


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for `model`; it connects at its first call."""
    options = read_options(model, AnthropicOptions)
    wire = Wire(
        path="/v1/messages",
        headers=_headers,
        body=partial(_body, options.name_at_service(model), options),
        reading=AnthropicReading,
        streamed=options.stream,
    )
    return open_connection(model, access, wire)


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
