"""Servers that behave badly: odd pieces, half replies, silence, giants, redirects."""

from __future__ import annotations

import asyncio
import gzip
import socket
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models.http import connection
from socratic_runner.models.http.reading import ReplyReading
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.http_process import free_port
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

MODEL = "openai-compatible/m"
JSON = "Content-Type: application/json"
REPLY = STREAM_HEAD + chunk("Why ") + chunk("not ö?", "stop") + b"data: [DONE]\n\n"


def saying(*pieces: bytes, then_close: bool = True) -> Answering:
    """Answers with these pieces, one after another."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if then_close:
            writer.close()

    return answer


async def silent(_request: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def ask(open_model: OpenModel, answer: Answering, **options: object) -> Reply:
    async with serving(answer) as server:
        return await open_model(MODEL, server.address, **options).ask(a_question())


async def fails(open_model: OpenModel, answer: Answering, **options: object) -> ModelCallFailed:
    async with serving(answer) as server:
        return await failure_of(open_model(MODEL, server.address, **options))


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_may_come_in_any_pieces(open_model: OpenModel, size: int):
    pieces = [REPLY[place : place + size] for place in range(0, len(REPLY), size)]
    reply = await ask(open_model, saying(*pieces))
    assert (reply.text, reply.status) == ("Why not ö?", Status.OK)


async def test_a_server_that_does_not_stream_is_understood_all_the_same(open_model: OpenModel):
    reply = await ask(open_model, saying(response("200 OK", completion("Why?"), JSON)))
    assert (reply.text, reply.first_token_ms) == ("Why?", None)


async def test_a_connection_cut_after_the_last_piece_loses_nothing(open_model: OpenModel):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n"
    reply = await ask(open_model, saying(head + chunk("Why?", "stop")))
    assert reply.text == "Why?"


@pytest.mark.parametrize(
    "sent",
    [
        STREAM_HEAD,
        STREAM_HEAD + chunk("Why"),
        STREAM_HEAD + chunk("Why")[:-1],
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + chunk("Why"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n",
    ],
)
async def test_half_a_stream_is_cut(open_model: OpenModel, sent: bytes):
    failure = await fails(open_model, saying(sent))
    assert (failure.kind, failure.retryable) == (FailureKind.CUT_STREAM, True)


async def test_half_a_body_is_cut(open_model: OpenModel):
    whole = response("200 OK", completion("Why?"), JSON)
    failure = await fails(open_model, saying(whole[:-5]), stream=False)
    assert failure.kind == FailureKind.CUT_STREAM


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (response("200 OK", b"<html>Welcome</html>", JSON), FailureKind.MALFORMED_REPLY),
        (response("200 OK", b"", JSON), FailureKind.MALFORMED_REPLY),
        (response("204 No Content", b"", JSON), FailureKind.MALFORMED_REPLY),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", FailureKind.MALFORMED_REPLY),
        (b"", FailureKind.UNREACHABLE),
        (b"HTTP/1.1 200 OK\r\nContent-Ty", FailureKind.UNREACHABLE),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_no_reply_at_all_has_a_kind(
    open_model: OpenModel, sent: bytes, kind: FailureKind, stream: bool
):
    assert (await fails(open_model, saying(sent), stream=stream)).kind == kind


async def test_a_redirect_is_not_followed(open_model: OpenModel):
    async with serving(saying(REPLY)) as elsewhere:
        location = f"Location: {elsewhere.address}/v1/chat/completions?token=secret"
        failure = await fails(open_model, saying(response("307 Moved", b"", location)))
        assert not elsewhere.requests
    assert isinstance(failure, ModelUnusable)
    assert failure.kind == FailureKind.BAD_REQUEST
    assert elsewhere.address in str(failure)
    assert "secret" not in str(failure)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_giant_reply_is_not_kept(open_model: OpenModel, monkeypatch, stream: bool):
    monkeypatch.setattr(ReplyReading, "largest", 50_000)
    head = STREAM_HEAD if stream else response("200 OK", b"", JSON).replace(b": 0", b": 100000")
    failure = await fails(open_model, saying(head + b"x" * 100_000), stream=stream)
    assert failure.kind == FailureKind.MALFORMED_REPLY
    assert "more than 50,000 bytes" in str(failure)


async def test_a_giant_error_is_read_only_at_its_beginning(open_model: OpenModel, monkeypatch):
    monkeypatch.setattr(connection, "_ERROR_SECONDS", 1000)

    async def endless(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nToo busy. ")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with waiting_for("the end of a call whose error never ends"):
        failure = await fails(open_model, endless)
    assert failure.kind == FailureKind.OVERLOADED
    assert "Too busy." in str(failure)


async def test_the_status_of_an_error_counts_even_if_its_body_never_comes(
    open_model: OpenModel, monkeypatch
):
    monkeypatch.setattr(connection, "_ERROR_SECONDS", 0.1)
    head = b"HTTP/1.1 429 Slow\r\nContent-Length: 100\r\nRetry-After: 3\r\n\r\nhalf a"
    failure = await fails(open_model, saying(head, then_close=False))
    assert (failure.kind, failure.retry_after) == (FailureKind.RATE_LIMITED, 3)
    assert "half a" in str(failure)


async def test_a_compressed_reply_that_was_not_asked_for_is_read(open_model: OpenModel):
    body = gzip.compress(completion("Why?"))
    answer = saying(response("200 OK", body, JSON, "Content-Encoding: gzip"))
    assert (await ask(open_model, answer, stream=False)).text == "Why?"


async def test_nobody_at_the_address_is_unreachable(open_model: OpenModel):
    failure = await failure_of(open_model(MODEL, f"http://127.0.0.1:{free_port()}/v1"))
    assert (failure.kind, failure.retryable) == (FailureKind.UNREACHABLE, True)
    failure = await failure_of(open_model(MODEL, "http://nobody.invalid/v1"))
    assert failure.kind == FailureKind.UNREACHABLE
    assert "nobody.invalid" in str(failure)


async def test_a_server_without_tls_is_told_from_one_that_cannot_be_reached(open_model: OpenModel):
    async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("400 Bad Request", b""))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        failure = await failure_of(open_model(MODEL, f"https://127.0.0.1:{port}"))
    assert failure.kind == FailureKind.TLS
    assert "begin base_url with http://" in str(failure)


async def test_a_connection_that_is_never_made_is_unreachable(open_model: OpenModel):
    # Somebody listens and accepts nothing: TLS is never agreed on.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        limits = Limits(connect_timeout_seconds=0.1, first_byte_timeout_seconds=30)
        failure = await failure_of(open_model(MODEL, address, limits=limits))
    assert failure.kind == FailureKind.UNREACHABLE
    assert "no connection within 0.1 s" in str(failure)


@pytest.mark.parametrize("head", [b"", STREAM_HEAD])
async def test_the_first_byte_is_one_of_the_body(open_model: OpenModel, head: bytes):
    limits = Limits(first_byte_timeout_seconds=0.1)
    failure = await fails(open_model, saying(head, then_close=False), limits=limits)
    assert failure.kind == FailureKind.TIMEOUT


@pytest.mark.parametrize("head", [None, b"", STREAM_HEAD, STREAM_HEAD + chunk("Why")])
async def test_cancelling_a_call_closes_its_connection(open_model: OpenModel, head: bytes | None):
    asked = asyncio.Event()

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head or b"")
        await writer.drain()
        asked.set()

    async with serving(answer) as server:
        client = open_model(MODEL, server.address, stream=head is not None)
        call = asyncio.create_task(client.ask(a_question()))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with waiting_for("the end of the connection", patience=10):
            await server.gone.wait()


@pytest.mark.parametrize("head", [b"", STREAM_HEAD, STREAM_HEAD + chunk("Why")])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_closing_a_client_ends_its_calls(open_model: OpenModel, head: bytes, host: str):
    asked = asyncio.Event()

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        asked.set()

    async with serving(answer) as server:
        client = open_model(MODEL, server.address.replace("127.0.0.1", host))
        begun = asyncio.create_task(client.ask(a_question()))
        await asked.wait()
        connecting = asyncio.create_task(client.ask(a_question()))
        await asyncio.sleep(0)  # lets it begin
        await client.close()
        async with waiting_for("the end of the client's calls", patience=10):
            ended = await asyncio.gather(begun, connecting, return_exceptions=True)
    for failure in ended:
        assert isinstance(failure, ModelCallFailed)
        assert failure.kind == FailureKind.CUT_STREAM
        assert "the client was closed" in str(failure)


async def test_a_closed_client_cannot_be_asked(open_model: OpenModel):
    client = open_model(MODEL, "http://127.0.0.1:1")
    await client.close()
    failure = await failure_of(client)
    assert (failure.kind, failure.retryable) == (FailureKind.UNKNOWN, False)
    assert "is closed" in str(failure)


@pytest.mark.parametrize("stream", [True, False])
async def test_without_tls_each_call_has_a_connection_of_its_own(
    open_model: OpenModel, stream: bool
):
    """So no call can mistake an unexpected reply for its own."""
    unasked = response("200 OK", completion("That was for somebody else."), JSON)

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        reply = completion(f"Reply {len(server.requests)}")
        writer.write(response("200 OK", reply, JSON) + unasked)

    async with serving(answer) as server:
        client = open_model(MODEL, server.address, stream=stream)
        replies = [(await client.ask(a_question())).text for _ in range(3)]
        assert replies == ["Reply 1", "Reply 2", "Reply 3"]
        assert server.connections == 3


async def test_many_calls_are_made_at_once(open_model: OpenModel):
    everybody = asyncio.Event()
    waiting = 0

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 300:
            everybody.set()
        await everybody.wait()
        writer.write(REPLY)
        writer.close()

    async with serving(answer) as server, waiting_for("three hundred replies"):
        client = open_model(MODEL, server.address)
        replies = await asyncio.gather(*(client.ask(a_question()) for _ in range(300)))
    assert {reply.text for reply in replies} == {"Why not ö?"}


async def test_a_stream_that_stays_open_after_its_end_is_left(open_model: OpenModel, monkeypatch):
    monkeypatch.setattr(connection, "_TAIL_SECONDS", 0.05)
    async with waiting_for("a reply whose stream stays open"):
        reply = await ask(open_model, saying(REPLY, then_close=False))
    assert reply.text == "Why not ö?"


async def test_a_proxy_of_the_environment_is_used_unless_it_is_not_for_this_host(
    open_model: OpenModel, monkeypatch
):
    async with serving(saying(REPLY)) as server, serving(saying(REPLY)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//user:pass%21@"))
        monkeypatch.setenv("no_proxy", "example.org")
        await open_model(MODEL, "http://model.test/v1").ask(a_question())
        assert proxy.requests[0].line.startswith("POST http://model.test/v1/chat/completions")
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic dXNlcjpwYXNzIQ=="
        await open_model(MODEL, server.address).ask(a_question())  # this machine's own
        assert len(server.requests) == len(proxy.requests) == 1


async def test_a_proxy_that_refuses_is_told_without_its_password(
    open_model: OpenModel, monkeypatch
):
    async with serving(saying(response("407 Proxy Authentication Required", b""))) as proxy:
        monkeypatch.setenv("https_proxy", proxy.address.replace("//", "//user:secret@"))
        monkeypatch.delenv("no_proxy", raising=False)
        failure = await failure_of(open_model(MODEL, "https://api.example.org/v1"))
    assert failure.kind == FailureKind.UNREACHABLE
    assert "the proxy answered HTTP 407" in str(failure)
    assert "secret" not in str(failure)


async def test_what_is_in_a_netrc_is_sent_to_nobody(
    open_model: OpenModel, monkeypatch, tmp_path: Path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    async with serving(saying(REPLY)) as server:
        await open_model(MODEL, server.address).ask(a_question())
        assert "authorization" not in server.requests[0].headers
