"""Faults of Bedrock, of a gateway before it, and of the network."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import closing
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models.aws import bedrock
from tests.integration.models.bedrock.bedrock_wire import (
    SECRETS,
    START,
    Answer,
    Wire,
    answering,
    delta,
    event,
    failure_of,
    hangs,
    isolate,
    metadata,
    opened,
    reply_to,
    responds,
    send_chunk,
    sends,
    stop,
)
from tests.waiting import waiting_for


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, SECRETS)


def error(code: str, message: str, status: int, **headers: str) -> Answer:
    return responds(status, {"message": message}, {"x-amzn-ErrorType": code, **headers})


@pytest.mark.parametrize("stream", [True, False])
async def test_a_throttled_call_says_how_long_to_wait_where_bedrock_does(stream):
    answer = error("ThrottlingException", "Too many tokens.", 429, **{"Retry-After": "7"})
    failure = await failure_of(answer, stream=stream)
    assert (failure.kind, failure.retry_after) == (FailureKind.RATE_LIMITED, 7.0)
    assert failure.retryable
    assert str(failure) == "Bedrock answered HTTP 429 (ThrottlingException): Too many tokens."


async def test_a_gateways_page_is_understood_by_its_status():
    failure = await failure_of(responds(503, "<html>busy</html>", {"Content-Type": "text/html"}))
    assert failure.kind == FailureKind.OVERLOADED
    assert failure.retry_after is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("throttlingException", FailureKind.RATE_LIMITED),
        ("serviceUnavailableException", FailureKind.OVERLOADED),
        ("internalServerException", FailureKind.OVERLOADED),
        ("modelStreamErrorException", FailureKind.CUT_STREAM),
    ],
)
async def test_an_error_within_a_stream_counts_like_one_before_it(code, kind):
    exception = event(code, {"message": "Sorry."}, message="exception")
    failure = await failure_of(sends(START, delta(text="Wh"), exception))
    gc.collect()  # a generator that was left open would be found here
    assert failure.kind == kind
    assert failure.retryable
    assert "Sorry." in str(failure)


async def test_an_error_within_a_stream_waits_as_its_headers_say():
    exception = event("throttlingException", {"message": "Sorry."}, message="exception")
    waits = sends(START, exception, headers={"Retry-After": "7"})
    assert (await failure_of(waits)).retry_after == 7


@pytest.mark.parametrize("counted", [True, False])
async def test_a_finished_reply_is_taken_though_its_stream_stays_open(monkeypatch, counted):
    monkeypatch.setattr(bedrock, "_COUNTS_SECONDS", 0.1)
    monkeypatch.setattr(bedrock, "_TAIL_SECONDS", 0.1)

    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        last = metadata() if counted else b""
        await sends(START, delta(text="Why?"), stop() + last, whole=False)(wire, writer)
        await hangs(wire, writer)

    reply = await reply_to(answer)
    assert (reply.text, reply.status) == ("Why?", Status.OK)
    assert reply.usage.input_tokens == (30 if counted else None)


async def test_a_finished_reply_is_taken_before_its_call_is_given_up():
    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        await sends(START, delta(text="Why?"), stop(), whole=False)(wire, writer)
        await hangs(wire, writer)

    limits = Limits(timeout_seconds=bedrock._MARGIN_SECONDS + 0.2)
    async with asyncio.timeout(bedrock._COUNTS_SECONDS):
        assert (await reply_to(answer, limits=limits)).text == "Why?"


async def test_what_goes_wrong_after_a_finished_reply_takes_nothing_from_it():
    exception = event("internalServerException", {"message": "Sorry."}, message="exception")
    for after in (exception, metadata()[:20]):
        reply = await reply_to(sends(START, delta(text="Why?"), stop(), after, whole=False))
        assert (reply.text, reply.status) == ("Why?", Status.OK)


@pytest.mark.parametrize(
    "counts", [{"inputTokens": -3, "outputTokens": 1}, {"outputTokens": 10**13}]
)
async def test_counts_that_cannot_be_true_spoil_no_reply(counts):
    body = {
        "output": {"message": {"content": [{"text": "Why?"}]}},
        "stopReason": "end_turn",
        "usage": counts,
    }
    assert (await reply_to(responds(200, body), stream=False)).text == "Why?"


@pytest.mark.parametrize(
    "answer",
    [
        sends(START, delta(text="What if you cons")),
        sends(START, delta(text="What if you cons"), whole=False),
        sends(START, delta(text="What"), stop()[:30]),
        sends(),
        sends(START, stop()[:-1]),
    ],
    ids=["ended", "broken off", "within an event", "at once", "a byte too few"],
)
async def test_a_stream_that_does_not_say_that_it_finished_is_cut(answer):
    failure = await failure_of(answer)
    assert failure.kind == FailureKind.CUT_STREAM
    assert failure.retryable


async def test_a_whole_response_that_breaks_off_is_cut():
    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{")

    assert (await failure_of(answer, stream=False)).kind == FailureKind.CUT_STREAM


async def test_a_connection_lost_before_the_response_is_unreachable():
    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        writer.close()

    failure = await failure_of(answer)
    assert failure.kind == FailureKind.UNREACHABLE


async def test_a_stream_with_a_wrong_checksum_is_malformed():
    broken = bytearray(delta(text="Why?"))
    broken[-1] ^= 1
    assert (await failure_of(sends(START, bytes(broken)))).kind == FailureKind.MALFORMED_REPLY


@pytest.mark.parametrize(
    "body",
    [
        "<html>welcome</html>",
        {},
        {"output": {}, "stopReason": "end_turn"},
        {"output": {"message": {"content": [{"text": "Why?"}]}}},
        {"output": {"message": {"content": [{"text": 5}]}}, "stopReason": "end_turn"},
        {
            "output": {"message": {"content": [{"text": "Why?"}]}},
            "stopReason": "malformed_model_output",
        },
    ],
    ids=["no json", "empty", "no message", "no reason", "no text", "says so"],
)
async def test_a_response_that_is_none_is_malformed(body):
    failure = await failure_of(responds(200, body), stream=False)
    assert failure.kind == FailureKind.MALFORMED_REPLY
    assert failure.retryable


async def test_a_stream_that_cannot_be_read_is_not_waited_for():
    answer = sends(START, delta(text="Why?"), event("messageStop", {}), whole=False)
    async with answering(answer, waits=True) as wire, opened(wire.address) as client:
        with pytest.raises(ModelCallFailed) as failure:
            await client.ask(a_question())
        async with waiting_for("the end of the connection", patience=10):
            await wire.hung_up.wait()
    assert failure.value.kind == FailureKind.MALFORMED_REPLY


async def test_a_stream_that_does_not_begin_in_time_is_given_up():
    limits = Limits(first_byte_timeout_seconds=0.2)
    failure = await failure_of(hangs, limits=limits)
    assert failure.kind == FailureKind.TIMEOUT
    assert "0.2 s" in str(failure)


@pytest.mark.long
async def test_a_stream_that_has_begun_may_take_its_time():
    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        await sends(START, whole=False)(wire, writer)
        await asyncio.sleep(2.5)  # longer than the first event may take
        await send_chunk(writer, delta(text="Why?") + stop() + metadata())
        writer.write(b"0\r\n\r\n")

    limits = Limits(first_byte_timeout_seconds=2)
    async with answering(answer) as wire, opened(wire.address, limits=limits) as client:
        assert (await client.ask(a_question())).text == "Why?"


async def test_a_reply_that_comes_to_a_halt_is_given_up():
    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        await sends(START, delta(text="Wh"), whole=False)(wire, writer)
        await hangs(wire, writer)

    limits = Limits(timeout_seconds=0.3)
    assert (await failure_of(answer, limits=limits)).kind == FailureKind.TIMEOUT
    assert (await failure_of(hangs, limits=limits, stream=False)).kind == FailureKind.TIMEOUT


async def test_nobody_listening_is_unreachable():
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    async with opened(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(ModelCallFailed, match="Could not connect") as failure:
            await client.ask(a_question())
    assert failure.value.kind == FailureKind.UNREACHABLE


async def test_a_connection_that_is_not_accepted_in_time_is_unreachable():
    with closing(socket.socket()) as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        try:
            for _ in range(4):  # more than its queue has room for
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(full.getsockname())
            limits = Limits(connect_timeout_seconds=0.3)
            address = f"http://127.0.0.1:{full.getsockname()[1]}"
            async with opened(address, limits=limits) as client:
                with pytest.raises(ModelCallFailed, match=r"[Cc]onnect") as failure:
                    await client.ask(a_question())
        finally:
            for each in waiting:
                each.close()
    assert failure.value.kind == FailureKind.UNREACHABLE


async def test_closing_ends_the_calls_that_hang_and_refuses_new_ones():
    async with answering(hangs) as wire, opened(wire.address) as client:
        calls = [asyncio.create_task(client.ask(a_question())) for _ in range(3)]
        await wire.asked(3)
        await client.close()
        for call in calls:
            with pytest.raises(ModelCallFailed, match="closed") as failure:
                await call
            assert failure.value.kind == FailureKind.CUT_STREAM
        with pytest.raises(ModelCallFailed, match="closed"):
            await client.ask(a_question())


async def test_closing_one_model_leaves_the_calls_of_another_alone():
    async with answering(hangs) as wire, opened(wire.address) as one:
        async with opened(wire.address) as other:
            mine, theirs = (asyncio.create_task(each.ask(a_question())) for each in (one, other))
            await wire.asked(2)
        with pytest.raises(ModelCallFailed, match="closed"):
            await theirs
        assert not mine.done()
        mine.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mine


async def test_a_failed_call_is_made_once():
    async with (
        answering(responds(503, {"message": "busy"})) as wire,
        opened(wire.address) as client,
    ):
        with pytest.raises(ModelCallFailed):
            await client.ask(a_question())
    assert len(wire.heads) == 1


async def test_a_call_that_is_cancelled_while_the_client_is_made_takes_no_other_along():
    answer = sends(START, delta(text="Why?"), stop(), metadata())
    async with answering(answer) as wire, opened(wire.address) as one, opened(wire.address) as two:
        first, second = (asyncio.create_task(each.ask(a_question())) for each in (one, two))
        await asyncio.sleep(0)  # lets both begin
        await asyncio.sleep(0)  # and wait for the client
        first.cancel()
        assert (await second).text == "Why?"
        with pytest.raises(asyncio.CancelledError):
            await first
