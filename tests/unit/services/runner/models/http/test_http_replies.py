"""The reading of replies, in every shape of every provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import Status
from socratic_runner.models.anthropic import AnthropicReading
from socratic_runner.models.http.failures import Failures
from socratic_runner.models.http.reading import Event, ReplyReading
from socratic_runner.models.openai.chat_completions import OpenAIReading

FAILURES = Failures("somebody", None)


def stream(reading: ReplyReading, *chunks: Any) -> Reply:
    for chunk in chunks:
        data = chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()
        reading.take_event(Event("", data))
    return reading.reply()


def openai(*chunks: Any) -> Reply:
    return stream(OpenAIReading(FAILURES, streamed=True), *chunks)


def anthropic(*chunks: Any) -> Reply:
    return stream(AnthropicReading(FAILURES, streamed=True), *chunks)


def whole(kind: type[ReplyReading], body: Any) -> Reply:
    reading = kind(FAILURES, streamed=False)
    reading.take_whole(json.dumps(body).encode())
    return reading.reply()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def completion(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop", **fields}]}


USAGE = {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80}
CACHE = {"prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 9}}


def test_a_stream_of_pieces_is_one_reply():
    reply = openai(
        {**delta(role="assistant", content=""), "provider": "DeepInfra"},
        delta(content="Why "),
        delta(content="not?"),
        delta("stop"),
        {"choices": [], "usage": USAGE | CACHE, "model": "gpt-5-2026-01-01"},
        b"[DONE]",
    )
    assert (reply.text, reply.status, reply.stop_reason) == ("Why not?", Status.OK, "stop")
    assert reply.usage == Usage(
        visible_output_tokens=30, input_tokens=50, cached_tokens=20, cache_write_tokens=9
    )
    assert (reply.model_version, reply.routed_to) == ("gpt-5-2026-01-01", "DeepInfra")
    assert reply.first_token_ms is not None


def test_a_reply_is_whole_without_a_last_word_once_it_says_why_it_stopped():
    assert openai(delta("stop", content="Why?")).text == "Why?"


@pytest.mark.parametrize(
    ("usage", "reasoned", "expected"),
    [
        (None, False, Usage()),
        ({}, False, Usage()),
        (USAGE, False, Usage(visible_output_tokens=30, input_tokens=50)),
        # OpenAI: reasoning is a part of what was written.
        (
            {**USAGE, "completion_tokens_details": {"reasoning_tokens": 20}},
            False,
            Usage(visible_output_tokens=10, reasoning_tokens=20, input_tokens=50),
        ),
        # xAI: it is not.
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            False,
            Usage(visible_output_tokens=9, reasoning_tokens=94, input_tokens=32),
        ),
        # Google: nor here, where only the total knows of it.
        (
            {"prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 89},
            False,
            Usage(visible_output_tokens=8, reasoning_tokens=60, input_tokens=21),
        ),
        (USAGE, True, Usage(unsplit_output_tokens=30, input_tokens=50)),
        (
            {**USAGE, "completion_tokens_details": {"reasoning_tokens": 0}},
            True,
            Usage(unsplit_output_tokens=30, input_tokens=50),
        ),
        # A gateway that rebuilds the counts of a stream: it leaves reasoning out of the first.
        (
            {**USAGE, "completion_tokens_details": {"reasoning_tokens": 100}},
            True,
            Usage(visible_output_tokens=30, reasoning_tokens=100, input_tokens=50),
        ),
        # What cannot be true is no count.
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, False, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": "30"}, False, Usage()),
        ({"prompt_tokens": 10**30, "completion_tokens": True}, False, Usage()),
    ],
)
def test_tokens_are_counted_as_each_provider_means_it(usage, reasoned, expected):
    chunks = [delta("stop", content="Why?"), {"choices": [], "usage": usage}]
    thought = [delta(reasoning_content="Hm.")] if reasoned else []
    assert openai(*thought, *chunks).usage == expected
    message = {"content": "Why?", **({"reasoning": "Hm."} if reasoned else {})}
    assert whole(OpenAIReading, {**completion(message), "usage": usage}).usage == expected


COUNTS = st.none() | st.integers(-5, 10**31) | st.floats() | st.text(max_size=3)


@given(
    counts=st.fixed_dictionaries(
        {
            "prompt_tokens": COUNTS,
            "completion_tokens": COUNTS,
            "total_tokens": COUNTS,
            "completion_tokens_details": st.none()
            | st.fixed_dictionaries({"reasoning_tokens": COUNTS}),
        }
    ),
    others=st.fixed_dictionaries(
        dict.fromkeys(
            (
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
                "output_tokens",
            ),
            COUNTS,
        )
    ),
    reasoned=st.booleans(),
)
def test_no_count_of_a_provider_spoils_a_reply(counts, others, reasoned):
    thought = [delta(reasoning="Hm.")] if reasoned else []
    assert openai(*thought, {**delta("stop", content="Why?"), "usage": counts}).text == "Why?"
    blocks = [{"type": "thinking"}] if reasoned else []
    message = {
        "type": "message",
        "content": [*blocks, {"type": "text", "text": "Why?"}],
        "stop_reason": "end_turn",
        "usage": others,
    }
    assert whole(AnthropicReading, message).text == "Why?"


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("stop", Status.OK),
        ("eos", Status.OK),
        ("length", Status.TRUNCATED),
        ("content_filter", Status.REFUSED),
        ("tool_calls", Status.ERROR),
        ("a_reason_of_next_year", Status.ERROR),
    ],
)
def test_openais_finish_reason_says_how_it_ended(reason: str, status: Status):
    assert openai(delta(reason, content="Why?")).status is status
    assert whole(OpenAIReading, completion({"content": "Why?"}, finish_reason=reason)).status is (
        status
    )


def test_a_refusal_is_a_reply_with_its_words():
    refused = whole(OpenAIReading, completion({"content": None, "refusal": "I won't."}))
    assert (refused.text, refused.status) == ("I won't.", Status.REFUSED)
    refused = openai(delta(refusal="I "), delta("stop", refusal="won't."))
    assert (refused.text, refused.status) == ("I won't.", Status.REFUSED)


def test_text_in_parts_is_text_and_thinking_is_not():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Why?"},
        {"type": "reference", "reference_ids": [1]},
    ]
    reply = whole(OpenAIReading, {**completion({"content": parts}), "usage": USAGE})
    assert reply.text == "Why?"
    assert reply.usage.unsplit_output_tokens == 30


def test_only_the_first_choice_is_read():
    second = {"index": 1, "delta": {"content": "No."}, "finish_reason": "length"}
    first = {"index": 0, "delta": {"content": "Why?"}, "finish_reason": "stop"}
    reply = openai({"choices": [second]}, {"choices": [first, second]})
    assert (reply.text, reply.status) == ("Why?", Status.OK)


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"error": {"message": "Overloaded", "code": 503}}, FailureKind.OVERLOADED),
        ({"error": "the prompt is too long"}, FailureKind.CONTEXT_TOO_LONG),
        ({"choices": [{"finish_reason": "error"}]}, FailureKind.UNKNOWN),
        (
            {"choices": [{"error": {"code": 429}, "finish_reason": "error"}]},
            FailureKind.RATE_LIMITED,
        ),
        (delta("insufficient_system_resource"), FailureKind.OVERLOADED),
        (b"not json", FailureKind.MALFORMED_REPLY),
        (b"[]", FailureKind.MALFORMED_REPLY),
        (b"\xff\xfe", FailureKind.MALFORMED_REPLY),
        (b'{"choices": [{"delta": {"content": "\\ud83d"}}]}', FailureKind.CUT_STREAM),
        ({"choices": [{"delta": {"content": 5}}]}, FailureKind.MALFORMED_REPLY),
        ({"choices": "none"}, FailureKind.MALFORMED_REPLY),
        (delta(content="Why"), FailureKind.CUT_STREAM),
        (b"[DONE]", FailureKind.CUT_STREAM),
        ({"object": "ping"}, FailureKind.CUT_STREAM),
    ],
)
def test_a_stream_that_is_no_reply_fails_in_its_kind(chunk: Any, kind: FailureKind):
    with pytest.raises(ModelCallFailed) as failure:
        openai(delta(content="I wonder "), chunk)
    assert failure.value.kind == kind


@pytest.mark.parametrize(
    ("reading", "body", "kind"),
    [
        (OpenAIReading, {}, FailureKind.MALFORMED_REPLY),
        (OpenAIReading, {"choices": []}, FailureKind.MALFORMED_REPLY),
        (OpenAIReading, [], FailureKind.MALFORMED_REPLY),
        (OpenAIReading, {"error": {"type": "overloaded_error"}}, FailureKind.OVERLOADED),
        (OpenAIReading, {"choices": [{"message": {"content": "W"}}]}, FailureKind.CUT_STREAM),
        (AnthropicReading, {}, FailureKind.MALFORMED_REPLY),
        (AnthropicReading, {"type": "completion"}, FailureKind.MALFORMED_REPLY),
        (AnthropicReading, {"type": "message", "content": "W"}, FailureKind.MALFORMED_REPLY),
        (AnthropicReading, {"type": "message", "content": []}, FailureKind.CUT_STREAM),
        (
            AnthropicReading,
            {"type": "error", "error": {"type": "overloaded_error"}},
            FailureKind.OVERLOADED,
        ),
        (AnthropicReading, {"type": "error"}, FailureKind.MALFORMED_REPLY),
    ],
)
def test_a_body_that_is_no_reply_fails_in_its_kind(reading, body, kind):
    with pytest.raises(ModelCallFailed) as failure:
        whole(reading, body)
    assert failure.value.kind == kind


START = {
    "type": "message_start",
    "message": {
        "type": "message",
        "content": [],
        "model": "claude-x",
        "stop_reason": None,
        "usage": {
            "input_tokens": 1,
            "cache_read_input_tokens": 53,
            "cache_creation_input_tokens": 6,
            "output_tokens": 1,
        },
    },
}


CACHED = {"input_tokens": 60, "cached_tokens": 53, "cache_write_tokens": 6}


def block(*deltas: dict[str, Any], kind: str = "text") -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}},
        *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def stopped(reason: str) -> list[dict[str, Any]]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 17},
        },
        {"type": "message_stop"},
    ]


WORDS = block({"type": "text_delta", "text": "Why "}, {"type": "text_delta", "text": "not?"})


def test_anthropics_events_are_one_reply():
    reply = anthropic(START, {"type": "ping"}, *WORDS, {"type": "new_kind"}, *stopped("end_turn"))
    assert (reply.text, reply.status, reply.stop_reason) == ("Why not?", Status.OK, "end_turn")
    assert reply.usage == Usage(visible_output_tokens=17, **CACHED)
    assert reply.model_version == "claude-x"
    assert reply.first_token_ms is not None


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_anthropics_thinking_is_no_text_and_its_tokens_are_not_told_apart(kind: str):
    thought = block({"type": "thinking_delta", "thinking": "Hm."}, kind=kind)
    signed = block({"type": "signature_delta", "signature": "abc"}, kind=kind)
    reply = anthropic(START, *thought, *signed, *WORDS, *stopped("end_turn"))
    assert reply.text == "Why not?"
    assert reply.usage == Usage(unsplit_output_tokens=17, **CACHED)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("end_turn", Status.OK),
        ("stop_sequence", Status.OK),
        ("max_tokens", Status.TRUNCATED),
        ("model_context_window_exceeded", Status.TRUNCATED),
        ("refusal", Status.REFUSED),
        ("tool_use", Status.ERROR),
        ("pause_turn", Status.ERROR),
    ],
)
def test_anthropics_stop_reason_says_how_it_ended(reason: str, status: Status):
    assert anthropic(START, *WORDS, *stopped(reason)).status is status


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error"}}, FailureKind.OVERLOADED),
        ({"type": "error", "error": {"type": "billing_error"}}, FailureKind.AUTH),
        ({"type": "error"}, FailureKind.UNKNOWN),
        ({"type": "message_stop"}, FailureKind.CUT_STREAM),
        ({"type": "message_delta", "delta": {"stop_reason": None}}, FailureKind.CUT_STREAM),
        ({"no": "type"}, FailureKind.MALFORMED_REPLY),
        (b"{", FailureKind.MALFORMED_REPLY),
    ],
)
def test_an_anthropic_stream_that_is_no_reply_fails_in_its_kind(chunk: Any, kind: FailureKind):
    with pytest.raises(ModelCallFailed) as failure:
        anthropic(START, *WORDS, chunk)
    assert failure.value.kind == kind


def test_names_that_a_provider_gives_are_kept_short_and_on_one_line():
    reply = openai({**delta("stop\n" + "x" * 999, content="Why?"), "model": "m\x1b" + "y" * 999})
    assert reply.stop_reason is not None
    assert reply.model_version is not None
    for name in (reply.stop_reason, reply.model_version):
        assert name.isprintable()
        assert len(name) == 200
