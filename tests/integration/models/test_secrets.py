"""A key goes to the provider in one header and nowhere else, whatever is done with it there."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback

import pytest
import structlog

from socratic_bench.domain.manifest import Limits
from socratic_bench.errors import ModelCallFailed
from tests.contract.models.questions import a_question
from tests.integration.models.conftest import OpenModel
from tests.integration.models.raw_server import (
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
                    api_key_env="THE_KEY",
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
        client = open_model("openai/m", server.address, api_key_env="THE_KEY", stream=False)
        reply = await client.ask(a_question())
    assert KEY not in repr(reply)
    assert reply.text == "Why?"


@PROVIDERS
async def test_the_key_is_in_no_url_and_no_body(open_model: OpenModel, provider: str):
    async with serving(nothing) as server:
        client = open_model(f"{provider}/m", server.address, api_key_env="THE_KEY")
        with pytest.raises(ModelCallFailed):
            await client.ask(a_question())
        (request,) = server.requests
    assert KEY not in request.line
    assert KEY.encode() not in request.body
    assert sum(KEY in value for value in request.headers.values()) == 1
