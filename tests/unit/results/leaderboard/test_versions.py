"""Whether the version that answered may be that of the model that was asked."""

from __future__ import annotations

import pytest

from socratic_bench.results.leaderboard.answer_sentences import is_alike


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("anthropic/claude-3.5-haiku", "claude-3-5-haiku-20241022"),
        ("gemini-2.0-flash", "gemini-2.0-flash-001"),
        ("mistral-small", "mistral-small-2409"),
        ("llama3.1", "llama3.1:latest"),
        ("meta-llama/Llama-3.1-8B-Instruct", "/models/Llama-3.1-8B-Instruct-Q4_K_M.gguf"),
        ("mistral", "mistral-7b-instruct-v0.3"),
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("o3", "o3-2025-04-16"),
        ("deepseek-chat", "deepseek-v3"),
        ("tutor", "tutor"),
    ],
)
def test_a_dated_or_fuller_name_is_the_model_that_was_asked(name: str, version: str) -> None:
    assert is_alike(name, version)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-4o-mini", "gpt-4o-2024-08-06"),
        ("gpt-4", "gpt-4o-2024-08-06"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
        ("claude-3-5-sonnet", "claude-3-5-haiku-20241022"),
        ("claude-3-7-sonnet", "claude-3-5-sonnet-20241022"),
        ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        ("tutor", "tiny-fallback-7b"),
        ("mistral-large", "qwen2.5-7b"),
    ],
)
def test_another_class_size_or_number_is_another_model(name: str, version: str) -> None:
    assert not is_alike(name, version)
