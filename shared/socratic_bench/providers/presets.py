"""The services with OpenAI's chat completions, by their name in model ids.

A preset holds the differences of a service; a service without one is `openai-compatible` with a
base_url of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Preset:
    """One service, or one kind of server."""

    base_url: str | None
    """Its base URL; None: the configuration must give one."""

    key_variable: str | None
    """The environment variable of its key; None: no key."""

    max_tokens_field: str = "max_tokens"
    """Its field for the limit of output tokens."""

    seed_field: str | None = None
    """Its field for the sampling seed; None: none is known."""

    stream_options: bool = True
    """Whether it takes `stream_options`, which add token counts to a stream. Services that do not
    take them send the counts anyway."""


_LOCAL: Final = "http://127.0.0.1"

PRESETS: Final[dict[str, Preset]] = {
    "openai": Preset(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        max_tokens_field="max_completion_tokens",
        seed_field="seed",
    ),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", seed_field="seed"),
    "gemini": Preset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "mistral": Preset(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        seed_field="random_seed",
        stream_options=False,
    ),
    "groq": Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY", seed_field="seed"),
    "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Preset("https://api.together.xyz/v1", "TOGETHER_API_KEY", seed_field="seed"),
    "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY", seed_field="seed"),
    "ollama": Preset(f"{_LOCAL}:11434/v1", None, seed_field="seed"),
    "vllm": Preset(f"{_LOCAL}:8000/v1", None, seed_field="seed"),
    "lmstudio": Preset(f"{_LOCAL}:1234/v1", None, seed_field="seed"),
    "llamacpp": Preset(f"{_LOCAL}:8080/v1", None, seed_field="seed"),
    "openai-compatible": Preset(None, None),
}
