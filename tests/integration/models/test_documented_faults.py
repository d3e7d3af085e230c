"""Faults that providers document or users reported: each has its class, its wait and its words.

A class decides more than one run: AUTH, BAD_REQUEST and NOT_FOUND end all calls to a model.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from socratic_bench.errors import FailureKind, ModelUnusable
from socratic_bench.scoring.exchange import UNFINISHED, Status
from tests.integration.models.conftest import OpenModel
from tests.integration.models.test_truthful_replies import (
    ANTHROPIC,
    DONE,
    JSON,
    OPENAI,
    ask,
    ended,
    event,
    fails,
    saying,
)
from tests.servers.providers.raw_server import STREAM_HEAD, chunk, completion, response

REFUSED, TOO_LONG = FailureKind.REFUSED, FailureKind.CONTEXT_TOO_LONG
RATE_LIMITED, OVERLOADED = FailureKind.RATE_LIMITED, FailureKind.OVERLOADED


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-a-very-secret-key-1")


TEXTS = [
    # OpenRouter: 403 is also a moderation's answer, which its metadata tells.
    (
        403,
        {
            "error": {
                "code": 403,
                "message": "anthropic/m requires moderation.",
                "metadata": {"reasons": ["violence"], "flagged_input": "How do I"},
            }
        },
        REFUSED,
    ),
    (403, {"error": {"code": 403, "message": "no", "type": "content_policy_violation"}}, REFUSED),
    # xAI refuses a text as if the key had no right to it.
    (
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        REFUSED,
    ),
    # OpenAI's reasoning models
    (
        400,
        {
            "error": {
                "message": "Invalid prompt: we've limited access to this content.",
                "type": "invalid_request_error",
                "code": "invalid_prompt",
            }
        },
        REFUSED,
    ),
    # DeepSeek
    (
        400,
        {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}},
        REFUSED,
    ),
    # Alibaba
    (
        400,
        {"error": {"message": "Input data may be bad.", "code": "data_inspection_failed"}},
        REFUSED,
    ),
    # Anthropic
    (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Output blocked by content filtering policy",
            },
        },
        REFUSED,
    ),
    # OpenAI: no wait makes room for a request that exceeds the whole limit.
    (
        429,
        {
            "error": {
                "message": "Request too large for gpt-4o in organization org-1 on tokens per min "
                "(TPM): Limit 30000, Requested 31538. The input or output tokens must be reduced "
                "in order to run successfully.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        TOO_LONG,
    ),
    # Gemini
    (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1091639) exceeds the maximum number of "
                    "tokens allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        TOO_LONG,
    ),
    # xAI
    (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains "
            "150000 tokens.",
        },
        TOO_LONG,
    ),
    # vLLM, where the prompt alone fills the context
    (
        400,
        {"error": {"message": "max_tokens must be at least 1, got -808.", "code": 400}},
        TOO_LONG,
    ),
    # Text Generation Inference
    (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
            "Given: 4000 `inputs` tokens and 1024 `max_new_tokens`",
            "error_type": "validation",
        },
        TOO_LONG,
    ),
]
"""What is wrong with one text, and not with the model."""


@pytest.mark.parametrize(("status", "body", "kind"), TEXTS)
async def test_a_text_that_cannot_be_answered_ends_no_call_for_another(
    open_model: OpenModel, status: int, body: Any, kind: FailureKind
) -> None:
    answer = saying(response(f"{status} No", json.dumps(body).encode(), JSON))
    failure = await fails(open_model, answer)
    assert not isinstance(failure, ModelUnusable)
    assert (failure.kind, failure.retryable) == (kind, False)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # xAI
        (400, {"code": "no", "error": "Incorrect API key provided: xa***1."}, FailureKind.AUTH),
        # Groq's flex tier
        (498, {"error": {"message": "capacity_exceeded"}}, OVERLOADED),
    ],
)
async def test_what_concerns_the_whole_model_is_told_apart(
    open_model: OpenModel, status: int, body: Any, kind: FailureKind
) -> None:
    answer = saying(response(f"{status} No", json.dumps(body).encode(), JSON))
    assert (await fails(open_model, answer)).kind == kind


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        # OpenAI
        (event({"error": {"code": "server_is_overloaded", "message": "busy"}}), OVERLOADED, "busy"),
        (event({"error": {"code": "slow_down", "message": "slow"}}), RATE_LIMITED, "slow"),
        # Mistral
        (
            event({"object": "error", "type": "service_tier_capacity_exceeded", "message": "full"}),
            OVERLOADED,
            "full",
        ),
        # Text Generation Inference
        (event({"error": "Too busy", "error_type": "overloaded"}), OVERLOADED, "Too busy"),
        # The event's name alone tells that it is an error.
        (event({"message": "quota gone", "code": 429}, "error"), RATE_LIMITED, "quota gone"),
        # Groq stops a stream early.
        (
            event({"choices": [], "x_groq": {"id": "r", "error": "over capacity"}}),
            FailureKind.UNKNOWN,
            "over capacity",
        ),
        # Gateways that end a stream with words of their own, and nothing of a reply.
        (event({"base_resp": {"status_code": 1002}}), FailureKind.MALFORMED_REPLY, "1002"),
    ],
)
async def test_an_error_that_interrupts_a_stream_keeps_its_words(
    open_model: OpenModel, said: bytes, kind: FailureKind, words: str
) -> None:
    failure = await fails(open_model, saying(STREAM_HEAD + said + DONE))
    assert (failure.kind, failure.retryable) == (kind, True)
    assert words in str(failure)


async def test_an_early_stop_that_groq_tells_of_beside_a_stop_reason_is_no_reply(
    open_model: OpenModel,
) -> None:
    last = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "x_groq": {"id": "r", "error": "over capacity"},
    }
    failure = await fails(open_model, saying(STREAM_HEAD + chunk("Perhaps") + event(last) + DONE))
    assert "over capacity" in str(failure)


@pytest.mark.parametrize("nothing", ["null", "None", ""])
async def test_no_stop_reason_is_no_stop_reason_in_whatever_words(
    open_model: OpenModel, nothing: str
) -> None:
    """Alibaba writes "null" while a model still writes."""
    stream = STREAM_HEAD + chunk("Why ", nothing) + chunk("not?", nothing)
    assert ended(await ask(open_model, saying(stream + chunk("", "stop") + DONE)))[0] is Status.OK
    cut = await fails(open_model, saying(stream + DONE))
    assert cut.kind == FailureKind.CUT_STREAM
    error = event({"error": {"code": 502, "message": "gone"}})
    assert (await fails(open_model, saying(stream + error))).kind == OVERLOADED
    body = completion("Why?").replace(b'"stop"', json.dumps(nothing).encode())
    whole = saying(response("200 OK", body, JSON))
    assert (await fails(open_model, whole, stream=False)).kind == FailureKind.CUT_STREAM


async def test_a_text_that_a_stream_also_repeats_whole_is_taken_once(open_model: OpenModel) -> None:
    """Perplexity sends the whole message beside each piece, others at the end."""

    def both(piece: str, so_far: str, reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": {"role": "assistant", "content": piece},
            "message": {"role": "assistant", "content": so_far},
            "finish_reason": reason,
        }
        return event({"object": "chat.completion.chunk", "choices": [choice]})

    stream = both("Why ", "Why ") + both("not?", "Why not?", "stop") + DONE
    assert (await ask(open_model, saying(STREAM_HEAD + stream))).text == "Why not?"
    whole = {"index": 0, "message": {"content": "Why not?"}, "finish_reason": "stop"}
    at_the_end = chunk("Why ") + chunk("not?") + event({"choices": [whole]}) + DONE
    assert (await ask(open_model, saying(STREAM_HEAD + at_the_end))).text == "Why not?"


async def test_a_stream_whose_pieces_each_begin_anew_is_no_longer_text(
    open_model: OpenModel,
) -> None:
    """Alibaba sends all text so far in each piece, unless it is asked for what is new."""
    grown = [chunk(text) for text in ("Why", "Why not", "Why not ask", "Why not ask?")]
    reply = await ask(open_model, saying(STREAM_HEAD + b"".join(grown) + chunk("", "stop") + DONE))
    assert reply.text == "Why not ask?"
    said = [chunk(text) for text in ("ha", "ha", "hah", "?")]
    reply = await ask(open_model, saying(STREAM_HEAD + b"".join(said) + chunk("", "stop") + DONE))
    assert reply.text == "hahahah?"


@pytest.mark.parametrize(
    ("model", "body"),
    [
        # Anthropic's server tools, and a compacted conversation
        (ANTHROPIC, {"type": "message", "stop_reason": "pause_turn"}),
        (ANTHROPIC, {"type": "message", "stop_reason": "compaction"}),
        # vLLM finds that a model repeats itself.
        (OPENAI, {"choices": [{"finish_reason": "repetition"}]}),
        # Google
        (OPENAI, {"choices": [{"finish_reason": "LANGUAGE"}]}),
        (OPENAI, {"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT"}]}),
        # Cohere
        (OPENAI, {"choices": [{"finish_reason": "ERROR_LIMIT"}]}),
        # watsonx
        (OPENAI, {"choices": [{"finish_reason": "time_limit"}]}),
    ],
)
async def test_no_reply_is_scored_that_ended_in_another_way(
    open_model: OpenModel, model: str, body: dict[str, Any]
) -> None:
    text = {"content": [{"type": "text", "text": "Perhaps?"}]}
    said = {**text, **body} if model == ANTHROPIC else body
    for choice in said.get("choices", ()):
        choice["message"] = {"content": "Perhaps?"}
    answer = saying(response("200 OK", json.dumps(said).encode(), JSON))
    status, kind, _ = ended(await ask(open_model, answer, model, stream=False))
    assert (status, kind) in {(Status.ERROR, UNFINISHED), (Status.REFUSED, None)}


def in_epoch(milliseconds: int = 1) -> str:
    return f"{(int(time.time()) + 20) * milliseconds}"


def in_iso() -> str:
    return (datetime.now(UTC) + timedelta(seconds=20)).isoformat()


RESETS = [
    # OpenAI and Groq
    (["x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 20s"], {}),
    (
        [
            "x-ratelimit-remaining-requests: 59",
            "x-ratelimit-reset-requests: 6m0s",
            "x-ratelimit-remaining-tokens: 0",
            "x-ratelimit-reset-tokens: 19.9s",
        ],
        {},
    ),
    # Azure
    (["x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 20"], {}),
    # Anthropic, beside gateways that take its Retry-After away
    (
        [
            "anthropic-ratelimit-requests-remaining: 0",
            f"anthropic-ratelimit-requests-reset: {in_iso()}",
        ],
        {},
    ),
    # OpenRouter, in the header and in the error
    (["X-RateLimit-Remaining: 0", f"X-RateLimit-Reset: {in_epoch(1000)}"], {}),
    (
        [],
        {
            "metadata": {
                "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": in_epoch(1000)}
            }
        },
    ),
    # Together, GitHub, and the drafts of a standard
    (["x-ratelimit-reset: 20"], {}),
    ([f"x-ratelimit-reset: {in_epoch()}"], {}),
    (["RateLimit-Remaining: 0", "RateLimit-Reset: 20"], {}),
    (['RateLimit: "api";r=0;t=20'], {}),
    # Mistral
    (["ratelimitbysize-remaining: 0", "ratelimitbysize-reset: 20"], {}),
    # Durations where seconds belong
    (["Retry-After: 20s"], {}),
    ([f"Retry-After: {format_datetime(datetime.now(UTC) + timedelta(seconds=20))}"], {}),
]


@pytest.mark.parametrize(("headers", "said"), RESETS)
async def test_an_exhausted_limit_is_waited_for_until_it_is_reset(
    open_model: OpenModel, headers: list[str], said: dict[str, Any]
) -> None:
    error = json.dumps({"error": {"message": "no", "code": 429, **said}}).encode()
    failure = await fails(open_model, saying(response("429 No", error, JSON, *headers)))
    assert failure.kind == RATE_LIMITED
    assert failure.retry_after is not None
    # Dates are counted from the moment of the call, which a test cannot hold still.
    assert -900 < failure.retry_after - 20 < 1


async def test_a_limit_with_room_left_is_no_wait(open_model: OpenModel) -> None:
    headers = ["x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-tokens: 6m0s"]
    error = json.dumps({"error": {"message": "no"}}).encode()
    for status in ("429 No", "503 No"):
        failure = await fails(open_model, saying(response(status, error, JSON, *headers)))
        assert failure.retry_after is None


async def test_blank_lines_before_a_whole_reply_are_signs_of_life(open_model: OpenModel) -> None:
    """DeepSeek sends them while a call waits for its turn."""
    answer = saying(response("200 OK", b"\n" * 50 + completion("Why?"), JSON))
    assert (await ask(open_model, answer, stream=False)).text == "Why?"
