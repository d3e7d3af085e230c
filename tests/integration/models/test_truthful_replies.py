"""Clients handle the quirks that providers and gateways document or users reported.

Each server here has a socket of its own and answers byte for byte.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, ModelUnusable
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import UNFINISHED, Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models.http import connection
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.providers.raw_server import (
    STREAM_HEAD,
    Answering,
    Request,
    chunk,
    completion,
    response,
    serving,
)
from tests.waiting import waiting_for

OPENAI, ANTHROPIC = "openai-compatible/m", "anthropic/m"
JSON = "Content-Type: application/json"
DONE = b"data: [DONE]\n\n"
KEY = "sk-a-very-secret-key-1"
KEPT_OPEN = STREAM_HEAD.replace(b"Connection: close\r\n", b"")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)


def event(data: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def message(*texts: str, stop_reason: str | None) -> bytes:
    """A stream of Anthropic's, without its last event."""
    start = {"type": "message", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}
    deltas: Iterator[dict[str, Any]] = (
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
        for text in texts
    )
    stop: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason},
        "usage": {"output_tokens": 5},
    }
    begin: dict[str, Any] = {"type": "message_start", "message": start}
    events = (begin, *deltas, stop)
    return b"".join(event(each, each["type"]) for each in events)


def saying(*pieces: bytes, then_close: bool = True) -> Answering:
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then_close:
            writer.close()

    return answer


async def ask(
    open_model: OpenModel, answer: Answering, model: str = OPENAI, **options: Any
) -> Reply:
    async with serving(answer) as server:
        options = {"key_variable": "A_KEY", **options}
        return await open_model(model, server.address, **options).ask(a_question())


async def fails(open_model: OpenModel, answer: Answering, model: str = OPENAI, **options: Any):
    async with serving(answer) as server:
        options = {"key_variable": "A_KEY", **options}
        return await failure_of(open_model(model, server.address, **options))


def ended(reply: Reply) -> tuple[Status, str | None, str | None]:
    return reply.status, reply.error_kind, reply.stop_reason


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("STOP", Status.OK),
        ("MAX_TOKENS", Status.TRUNCATED),
        ("content_filter: RECITATION", Status.REFUSED),
        ("SAFETY", Status.REFUSED),
        ("OTHER", Status.ERROR),
        ("tool_calls", Status.ERROR),
        ("of_next_year", Status.ERROR),
    ],
)
async def test_an_answer_counts_only_if_its_stop_reason_is_known_to_end_one(
    open_model: OpenModel, reason: str, status: Status
):
    expected = (status, UNFINISHED if status is Status.ERROR else None, reason)
    stream = saying(STREAM_HEAD + chunk("Perhaps") + chunk("?", reason) + DONE)
    assert ended(await ask(open_model, stream)) == expected
    body = completion("Perhaps?").replace(b'"stop"', json.dumps(reason).encode())
    whole = saying(response("200 OK", body, JSON))
    reply = await ask(open_model, whole, stream=False)
    assert (ended(reply), reply.text) == (expected, "Perhaps?")
    claude = saying(STREAM_HEAD + message("Perhaps?", stop_reason=reason))
    assert ended(await ask(open_model, claude, ANTHROPIC)) == expected


@pytest.mark.parametrize("reason", ["abort", "error", "network_error"])
async def test_an_answer_that_the_server_broke_off_is_asked_for_again(
    open_model: OpenModel, reason: str
):
    stream = saying(STREAM_HEAD + chunk("Perhaps") + chunk("", reason) + DONE)
    failure = await fails(open_model, stream)
    assert failure.retryable
    assert failure.kind in {FailureKind.CUT_STREAM, FailureKind.UNKNOWN}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # LiteLLM's proxy sends its codes as text.
        ({"message": "bad key", "type": "auth_error", "code": "401"}, FailureKind.AUTH),
        ({"message": "no", "type": "None", "code": "429"}, FailureKind.RATE_LIMITED),
        ({"message": "no", "type": "throttling_error"}, FailureKind.RATE_LIMITED),
        ({"message": "no", "type": "budget_exceeded", "code": "429"}, FailureKind.AUTH),
        # OpenRouter's are numbers, and it has names of its own.
        (
            {"code": 502, "message": "no", "metadata": {"error_type": "provider_unavailable"}},
            FailureKind.OVERLOADED,
        ),
        ({"message": "no", "metadata": {"error_type": "timeout"}}, FailureKind.TIMEOUT),
        # vLLM
        ({"message": "no", "type": "NotFoundError", "code": 404}, FailureKind.NOT_FOUND),
        ({"message": "no", "type": "BadRequestError"}, FailureKind.BAD_REQUEST),
        # Google
        ({"message": "no", "status": "RESOURCE_EXHAUSTED"}, FailureKind.RATE_LIMITED),
        ({"message": "no", "status": "UNAUTHENTICATED"}, FailureKind.AUTH),
    ],
)
async def test_an_error_within_a_reply_is_understood(
    open_model: OpenModel, error: dict[str, Any], kind: FailureKind
):
    failure = await fails(open_model, saying(STREAM_HEAD + event({"error": error}) + DONE))
    assert failure.kind == kind
    whole = saying(response("200 OK", json.dumps([{"error": error}]).encode(), JSON))
    assert (await fails(open_model, whole, stream=False)).kind == kind


async def test_an_error_that_is_the_whole_chunk_is_one(open_model: OpenModel):
    error = {"object": "error", "message": "no", "code": 401}
    failure = await fails(open_model, saying(STREAM_HEAD + event(error) + DONE))
    assert isinstance(failure, ModelUnusable)


WAITS = [
    (["Retry-After: 7"], {}, 7),
    (["retry-after-ms: 1500"], {}, 1.5),
    (["x-ms-retry-after-ms: 1500"], {}, 1.5),
    ([], {"retry_after": 3}, 3),
    ([], {"metadata": {"retry_after_seconds": 3}}, 3),
    ([], {"metadata": {"headers": {"Retry-After": "4"}}}, 4),
    ([], {"details": [{"retryDelay": "34.5s"}]}, 34.5),
    ([], {"message": "Rate limit reached. Please try again in 1m2.5s."}, 62.5),
    ([], {"message": "Please retry after 26 seconds."}, 26),
    (["Retry-After: 999999999999"], {}, 3600),
    (
        ["Date: Fri, 01 May 2020 12:00:00 GMT", "Retry-After: Fri, 01 May 2020 12:00:40 GMT"],
        {},
        40,
    ),
    (
        ["Date: Fri, 01 May 2099 12:00:00 GMT", "Retry-After: Fri, 01 May 2099 12:00:40 GMT"],
        {},
        40,
    ),
]


@pytest.mark.parametrize(("headers", "said", "seconds"), WAITS)
async def test_a_wait_is_found_wherever_it_stands(
    open_model: OpenModel, headers: list[str], said: dict[str, Any], seconds: float
):
    error = json.dumps({"error": {"message": "no", "code": 429, **said}}).encode()
    answers = (
        response("429 Too Many Requests", error, JSON, *headers),
        response("200 OK", error, JSON, *headers),
        response(
            "200 OK", b"data: " + error + b"\n\n", "Content-Type: text/event-stream", *headers
        ),
        response("429 Too Many Requests", error, JSON, "x-should-retry: false", *headers),
    )
    for number, answer in enumerate(answers):
        failure = await fails(open_model, saying(answer))
        assert (failure.kind, failure.retry_after) == (FailureKind.RATE_LIMITED, seconds)
        assert failure.retryable == (number < 3)


@pytest.mark.parametrize(
    "beat", [b"data:\n\n", b"data: \n\n", b": still here\n\n", b"event: ping\n\n"]
)
async def test_no_heartbeat_ends_a_stream(open_model: OpenModel, beat: bytes):
    answer = saying(STREAM_HEAD + beat + chunk("Why ") + beat + chunk("not?", "stop") + beat + DONE)
    assert (await ask(open_model, answer)).text == "Why not?"
    claude = message("Why not?", stop_reason="end_turn").replace(b"\n\n", b"\n\n" + beat)
    assert (await ask(open_model, saying(STREAM_HEAD + claude), ANTHROPIC)).text == "Why not?"


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
async def test_a_finished_reply_is_taken_though_its_stream_stays_open(
    open_model: OpenModel, monkeypatch, model: str
):
    monkeypatch.setattr(connection, "_COUNTS_SECONDS", 0.1)
    said = (
        message("Why?", stop_reason="end_turn")
        if model == ANTHROPIC
        else chunk("Wh") + chunk("y?", "stop")
    )
    async with waiting_for("a reply whose stream stays open", patience=30):
        reply = await ask(open_model, saying(KEPT_OPEN + said, then_close=False), model)
    assert (reply.text, reply.status) == ("Why?", Status.OK)


async def test_a_finished_reply_is_taken_before_its_call_is_given_up(open_model: OpenModel):
    answer = saying(KEPT_OPEN + chunk("Why?", "stop"), then_close=False)
    limits = Limits(timeout_seconds=connection._MARGIN_SECONDS + 0.2)
    async with asyncio.timeout(connection._COUNTS_SECONDS):
        assert (await ask(open_model, answer, limits=limits)).text == "Why?"


async def test_the_count_of_tokens_is_waited_for(open_model: OpenModel):
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(KEPT_OPEN + chunk("Why?", "stop"))
        await writer.drain()
        await asyncio.sleep(0.1)  # what is measured: that a client waits for this long
        writer.write(event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}))
        writer.close()

    assert (await ask(open_model, answer)).usage.visible_output_tokens == 3


async def test_what_goes_wrong_after_a_finished_reply_takes_nothing_from_it(open_model: OpenModel):
    for after in (b"data: {broken\n\n", event({"error": {"code": 500, "message": "no usage"}})):
        reply = await ask(open_model, saying(STREAM_HEAD + chunk("Why?", "stop") + after))
        assert (reply.text, reply.status) == ("Why?", Status.OK)
    last = message("Why?", stop_reason="end_turn") + event({"type": "message_stop"}) + DONE
    assert (await ask(open_model, saying(STREAM_HEAD + last), ANTHROPIC)).text == "Why?"


async def test_a_stop_reason_that_text_follows_was_none(open_model: OpenModel):
    stream = STREAM_HEAD + chunk("Why", "stop") + chunk(" not")
    assert (await fails(open_model, saying(stream))).kind == FailureKind.CUT_STREAM
    reply = await ask(open_model, saying(stream + chunk("?", "length") + DONE))
    assert (reply.text, reply.status) == ("Why not?", Status.TRUNCATED)


async def test_a_whole_reply_of_which_only_the_length_is_wrong_is_taken(open_model: OpenModel):
    body = completion("Why?")
    answer = response("200 OK", body, JSON).replace(
        f"Content-Length: {len(body)}".encode(), b"Content-Length: 99999"
    )
    assert (await ask(open_model, saying(answer), stream=False)).text == "Why?"


async def test_what_is_wrong_is_told_in_true_words(open_model: OpenModel, monkeypatch):
    monkeypatch.setattr(connection, "_TAIL_SECONDS", 0.1)
    failure = await fails(open_model, saying(KEPT_OPEN + chunk("Why") + DONE, then_close=False))
    assert failure.kind == FailureKind.CUT_STREAM
    assert "without a stop reason" in str(failure)

    page = response("200 OK", b"<html>Log in first</html>", "Content-Type: text/html")
    for stream in (True, False):
        failure = await fails(open_model, saying(page), stream=stream)
        assert failure.kind == FailureKind.MALFORMED_REPLY
        assert "<html>Log in first</html>" in str(failure)

    error = json.dumps({"error": {"message": "Slow down.", "code": 429}}).encode()
    mistyped = response("200 OK", error, "Content-Type: text/plain")
    failure = await fails(open_model, saying(mistyped))
    assert failure.kind == FailureKind.RATE_LIMITED
    assert "Slow down." in str(failure)

    for encoding in ("br", "gzip"):
        packed = response("200 OK", completion("Why?"), JSON, f"Content-Encoding: {encoding}")
        for stream in (True, False):
            failure = await fails(open_model, saying(packed), stream=stream)
            assert failure.kind == FailureKind.MALFORMED_REPLY
            assert f"content-encoding: {encoding}".replace("br", "brotli") in str(failure)


async def test_a_whole_reply_of_any_content_type_is_one(open_model: OpenModel):
    answer = saying(response("200 OK", completion("Why?"), "Content-Type: text/plain"))
    assert (await ask(open_model, answer)).text == "Why?"


@pytest.mark.parametrize("usage", ["none", 5, [1], {"completion_tokens_details": "none"}])
async def test_a_usage_that_is_none_spoils_no_reply(open_model: OpenModel, usage: object):
    body = completion("Why?", usage=usage, model=5)
    assert (await ask(open_model, saying(response("200 OK", body, JSON)), stream=False)).text
    claude = {
        "type": "message",
        "content": [{"type": "text", "text": "Why?"}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    answer = saying(response("200 OK", json.dumps(claude).encode(), JSON))
    assert (await ask(open_model, answer, ANTHROPIC, stream=False)).text == "Why?"


async def test_a_hidden_key_leaves_one_mark(open_model: OpenModel):
    said = f"You sent (authorization: Bearer {KEY}), and ['x-api-key: {KEY}']."
    error = json.dumps({"error": {"message": said}}).encode()
    failure = str(await fails(open_model, saying(response("401 No", error, JSON))))
    assert "(authorization: Bearer [hidden]), and ['x-api-key: [hidden]']." in failure
