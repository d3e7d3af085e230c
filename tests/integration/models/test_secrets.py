"""A key goes to the provider in one header and nowhere else, whatever the provider does with it."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import traceback
from typing import Any
from urllib.parse import quote

import pytest
import structlog

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable
from socratic_bench.testing.samples import a_question
from tests.integration.models.conftest import OpenModel
from tests.servers.providers.raw_server import (
    STREAM_HEAD,
    Request,
    chunk,
    completion,
    response,
    serving,
)

KEY = "sk-proj-Very+Secret/Key=93"
PARTS = ("sk-proj", "Very+Secret", "Very%2BSecret", "Secret/Key", "Secret%2FKey")
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)


def everything(headers: dict[str, str]) -> str:
    return json.dumps(headers) + repr(headers) + "".join(f"{k}: {v}\n" for k, v in headers.items())


async def status(request: Request, writer: asyncio.StreamWriter, number: int) -> None:
    error = {"type": KEY, "code": KEY, "message": everything(request.headers)}
    body = json.dumps({"error": error, "detail": KEY}).encode()
    writer.write(response(f"{number} {KEY}", body, f"Retry-After: {KEY}", f"Location: /{KEY}"))


async def text_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response("400 No", everything(request.headers).encode()))


async def long_body(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response("400 No", b"x" * (1000 - len(KEY) // 2) + KEY.encode()))


async def in_a_stream(request: Request, writer: asyncio.StreamWriter) -> None:
    error = {"type": "error", "error": {"type": KEY, "message": everything(request.headers)}}
    writer.write(STREAM_HEAD + b"data: " + json.dumps(error).encode() + b"\n\n")
    writer.close()


async def malformed(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD + b'data: {"choices": "' + KEY.encode() + b'", "' + KEY.encode())
    writer.write(b'": 1}\n\n')
    writer.close()


async def no_http(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(KEY.encode() + b"\r\n\r\n")
    writer.close()


async def bad_header(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + KEY.encode() + b"\r\n\r\n")
    writer.close()


async def cut(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD + chunk(KEY))
    writer.close()


async def bad_chunk(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + KEY.encode() + b"\r\n")
    writer.close()


async def nothing(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def silence(_request: Request, _writer: asyncio.StreamWriter) -> None:
    return


def with_status(number: int):
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        await status(request, writer, number)

    return answer


OUTCOMES = [
    *(with_status(number) for number in (301, 400, 401, 403, 404, 413, 429, 500, 503, 529)),
    text_body,
    long_body,
    in_a_stream,
    malformed,
    no_http,
    bad_header,
    cut,
    bad_chunk,
    nothing,
    silence,
]


@PROVIDERS
@pytest.mark.parametrize("stream", [True, False])
async def test_no_outcome_shows_the_key(
    open_model: OpenModel, caplog: pytest.LogCaptureFixture, capsys, provider: str, stream: bool
):
    caplog.set_level(logging.DEBUG)
    limits = Limits(first_byte_timeout_seconds=0.2)
    shown: list[str] = []
    with structlog.testing.capture_logs() as logs:
        for answer in OUTCOMES if stream else OUTCOMES[:-1]:
            async with serving(answer) as server:
                client = open_model(
                    f"{provider}/m",
                    server.address,
                    key_variable="THE_KEY",
                    stream=stream,
                    limits=limits,
                )
                with pytest.raises(ModelCallFailed) as failed:
                    await client.ask(a_question())
                (request,) = server.requests
                assert KEY in request.headers.get("x-api-key", "") + request.headers.get(
                    "authorization", ""
                )
                failure = failed.value
                shown += [str(failure), repr(failure), repr(vars(failure)), repr(client)]
                shown += traceback.format_exception(failure)
    shown += [caplog.text, repr(logs), *capsys.readouterr()]
    for part in PARTS:
        assert part not in "\n".join(shown)


async def test_what_a_reply_says_of_itself_does_not_show_the_key(open_model: OpenModel):
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(
            response("200 OK", completion("Why?", model=KEY), "Content-Type: application/json")
        )

    async with serving(answer) as server:
        client = open_model("openai/m", server.address, key_variable="THE_KEY", stream=False)
        reply = await client.ask(a_question())
    assert KEY not in repr(reply)
    assert reply.text == "Why?"


@PROVIDERS
async def test_the_key_is_in_no_url_and_no_body(open_model: OpenModel, provider: str):
    async with serving(nothing) as server:
        client = open_model(f"{provider}/m", server.address, key_variable="THE_KEY")
        with pytest.raises(ModelCallFailed):
            await client.ask(a_question())
        (request,) = server.requests
    assert KEY not in request.line
    assert KEY.encode() not in request.body
    assert sum(KEY in value for value in request.headers.values()) == 1


@PROVIDERS
@pytest.mark.parametrize(
    "said",
    [
        KEY,
        KEY.upper(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        json.dumps(KEY)[1:-1],
    ],
)
@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_key_that_comes_back_in_an_answer_is_hidden(
    open_model: OpenModel, provider: str, said: str, pieces: int
):
    text = f"What is {said} for?"
    step = -(-len(text) // pieces)
    parts = [text[at : at + step] for at in range(0, len(text), step)]

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + (stream_of(provider, parts)))
        writer.close()

    async with serving(answer) as server:
        client = open_model(f"{provider}/m", server.address, key_variable="THE_KEY")
        reply = await client.ask(a_question())
    assert "[hidden]" in reply.text
    assert reply.text.startswith("What is ")
    for piece in reply.text.removeprefix("What is ").removesuffix(" for?").split("[hidden]"):
        for part in PARTS:
            assert part.lower() not in piece.lower()


def stream_of(provider: str, parts: list[str]) -> bytes:
    if provider == "openai":
        return b"".join(map(chunk, parts)) + chunk("", "stop") + b"data: [DONE]\n\n"
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "model": "m",
                "content": [],
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        },
        *(
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": part}}
            for part in parts
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


async def test_an_ordinary_word_that_a_server_takes_for_a_key_stays_in_an_answer(
    open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("THE_KEY", "EMPTY")

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        text = "Is the set EMPTY, or empty?"
        writer.write(response("200 OK", completion(text), "Content-Type: application/json"))

    async with serving(answer) as server:
        client = open_model("vllm/m", server.address, key_variable="THE_KEY", stream=False)
        assert (await client.ask(a_question())).text == "Is the set EMPTY, or empty?"


@PROVIDERS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(open_model: OpenModel, provider: str, status: int):
    async with serving(nothing) as elsewhere:

        async def away(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(response(f"{status} Away", b"", f"Location: {elsewhere.address}/v1"))

        async with serving(away) as server:
            client = open_model(f"{provider}/m", server.address, key_variable="THE_KEY")
            with pytest.raises(ModelUnusable, match=r"a redirect to .* is not followed") as failed:
                await client.ask(a_question())
        assert (elsewhere.connections, failed.value.kind) == (0, FailureKind.BAD_REQUEST)


async def test_what_a_foreign_server_says_of_an_error_is_kept_short(open_model: OpenModel):
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response("400 No", b"an internal page of somebody " * 1000))

    async with serving(answer) as server:
        client = open_model("openai/m", server.address, key_variable="THE_KEY")
        with pytest.raises(ModelCallFailed) as failed:
            await client.ask(a_question())
    assert len(str(failed.value)) < 350


ADDRESSES = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "::ffff:169.254.169.254",
    "::ffff:100.100.100.200",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fe80::1",
    "fd00:ec2::254",
]


def leading_to(*answers: list[str]):
    """A resolver that gives these addresses in turn, and repeats the last ones."""
    left = list(answers)

    def resolve(_host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        given = left.pop(0) if len(left) > 1 else left[0]
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in given
        ]

    return resolve


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_name_that_leads_to_the_metadata_of_a_cloud_is_not_followed(
    open_model: OpenModel, monkeypatch: pytest.MonkeyPatch, address: str
):
    monkeypatch.setattr(socket, "getaddrinfo", leading_to([address]))
    client = open_model("openai/m", "http://llm.example:80", key_variable="THE_KEY")
    with pytest.raises(ModelUnusable, match="is never called") as failed:
        await client.ask(a_question())
    assert failed.value.kind == FailureKind.BAD_REQUEST


async def test_a_name_that_leads_elsewhere_once_it_was_called_gains_nothing(
    open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
):
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", completion("Why?"), "Content-Type: application/json"))

    async with serving(answer) as server:
        port = server.address.rpartition(":")[2]
        resolver = leading_to(["127.0.0.1"], ["169.254.169.254", "fd00:ec2::254"])
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        where = ("openai/m", f"http://llm.example:{port}")
        first = open_model(*where, key_variable="THE_KEY", stream=False)
        assert (await first.ask(a_question())).text == "Why?"
        second = open_model(*where, key_variable="THE_KEY", stream=False)
        with pytest.raises(ModelUnusable, match="is never called"):
            await second.ask(a_question())
