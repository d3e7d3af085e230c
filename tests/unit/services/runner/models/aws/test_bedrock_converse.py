"""A question in Converse's form, and replies of any shape."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.visible_text import joined
from socratic_bench.testing.samples import a_question
from socratic_runner.models.aws.connections import kept_alive
from socratic_runner.models.aws.converse import Answer, messages, request

TEXTS = st.sampled_from(["", " ", "\n\t", "Why?", "Because.", "　"])


@given(
    earlier=st.lists(st.builds(EarlierTurn, student=TEXTS, tutor=TEXTS), max_size=5),
    last=TEXTS.filter(str.strip),
)
def test_messages_alternate_and_nobody_says_nothing(earlier, last):
    question = a_question()._replace(earlier_turns=tuple(earlier), student_message=last)
    said = messages(question)
    blocks = [block["text"] for message in said for block in message["content"]]
    spoken = [text for turn in earlier for text in (turn.student, turn.tutor)] + [last]
    assert blocks == [text for text in spoken if text.strip()]
    roles = [message["role"] for message in said]
    assert all(one != other for one, other in pairwise(roles))
    assert roles[-1] == "user"


def test_a_tutor_who_said_nothing_leaves_the_student_speaking_on():
    question = a_question()._replace(
        earlier_turns=(EarlierTurn(student="First", tutor="  "),), student_message="Second"
    )
    assert messages(question) == [
        {"role": "user", "content": [{"text": "First"}, {"text": "Second"}]}
    ]


def test_what_is_empty_or_to_be_left_out_is_not_sent():
    body = request(
        a_question()._replace(system_prompt=" "),
        "m",
        omit=frozenset({"temperature", "top_p"}),
        fields={},
    )
    assert set(body) == {"modelId", "messages", "inferenceConfig"}
    assert body["inferenceConfig"] == {"maxTokens": 600}


KEYS = st.sampled_from(
    [
        "contentBlockDelta",
        "delta",
        "text",
        "reasoningContent",
        "messageStop",
        "stopReason",
        "metadata",
        "usage",
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "trace",
        "promptRouter",
        "output",
        "message",
        "content",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def what_is_read(read: Callable[[], Reply]) -> Reply | ModelCallFailed:
    """The reply, or its classified failure; any other error is a bug."""
    try:
        return read()
    except ModelCallFailed as failure:
        return failure


def is_sound(outcome: Reply | ModelCallFailed) -> bool:
    if isinstance(outcome, Reply):
        return isinstance(outcome.text, str)
    return outcome.kind in {FailureKind.MALFORMED_REPLY, FailureKind.CUT_STREAM}


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=3), max_size=6))
def test_events_of_any_shape_are_a_reply_or_a_failure(events):
    answer = Answer()

    def read() -> Reply:
        for event in events:
            answer.take_event(event)
        return answer.reply(latency_ms=1)

    assert is_sound(what_is_read(read))


@given(
    st.dictionaries(KEYS, JSON, max_size=5)
    | st.builds(
        lambda content, usage: {
            "output": {"message": {"content": content}},
            "stopReason": "end_turn",
            "usage": usage,
        },
        JSON,
        JSON,
    )
)
def test_responses_of_any_shape_are_a_reply_or_a_failure(response):
    answer = Answer()

    def read() -> Reply:
        answer.take_response(response)
        return answer.reply(latency_ms=1)

    assert is_sound(what_is_read(read))


@given(st.lists(st.text(max_size=10)))
def test_the_events_of_a_text_are_joined_as_those_of_any_stream(pieces):
    answer = Answer()
    for piece in pieces:
        brought = answer.take_event({"contentBlockDelta": {"delta": {"text": piece}}})
        assert brought is bool(piece)
    answer.take_event({"messageStop": {"stopReason": "end_turn"}})
    assert answer.reply(latency_ms=1).text == joined(pieces)


@pytest.mark.skipif(os.name != "posix", reason="these socket options are POSIX's")
def test_a_connection_shows_that_it_is_in_use():
    with kept_alive((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 60
