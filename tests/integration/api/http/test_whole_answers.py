"""Whole answers: what is too large or too late becomes a problem that says what to do."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from socratic_api.http.whole_answers import COMMAND, MOST_BYTES, WholeAnswers
from tests.integration.api.http.test_every_answer import assert_secure


async def _sized(request: Request) -> Response:
    size = int(request.path_params["size"])

    async def pieces():
        yield b"x" * (size - 1)
        yield b"x"

    return StreamingResponse(pieces(), headers={"x-kept": "yes"})


async def _endless(request: Request) -> Response:
    request.scope["state"][COMMAND] = "socratic-bench export exp-1"
    await asyncio.Event().wait()
    raise AssertionError


async def _own_timeout(_request: Request) -> Response:
    raise TimeoutError("the application's own")


APP = Starlette(
    routes=[
        Route("/sized/{size}", _sized),
        Route("/endless", _endless),
        Route("/own", _own_timeout),
    ]
)


async def ask(app: ASGIApp, path: str, encoding: str = "identity") -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get(path, headers={"accept-encoding": encoding})


async def test_an_answer_that_fits_is_sent_as_it_is() -> None:
    app = WholeAnswers(APP, lambda: 60)
    answer = await ask(app, f"/sized/{MOST_BYTES}")
    assert (answer.status_code, len(answer.content)) == (200, MOST_BYTES)
    assert answer.headers["x-kept"] == "yes"


async def test_an_answer_that_fits_compressed_is_sent_compressed() -> None:
    answer = await ask(WholeAnswers(APP, lambda: 60), f"/sized/{2 * MOST_BYTES}", "gzip")
    assert (answer.status_code, len(answer.content)) == (200, 2 * MOST_BYTES)
    assert answer.headers["content-encoding"] == "gzip"


async def test_an_answer_that_is_too_large_is_a_problem_that_says_how_to_get_less() -> None:
    answer = await ask(WholeAnswers(APP, lambda: 60), f"/sized/{MOST_BYTES + 1}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert (
        "the answer has more than 4,500,000 bytes, the most that this API sends"
        in answer.json()["detail"]
    )
    assert "Accept-Encoding: gzip" in answer.json()["detail"]
    assert "x-kept" not in answer.headers
    assert_secure(answer)


async def test_an_answer_that_takes_too_long_is_a_problem_that_asks_to_try_again() -> None:
    answer = await ask(WholeAnswers(APP, lambda: 0), "/endless")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "or use the command, `socratic-bench export exp-1`" in answer.json()["detail"]
    assert_secure(answer)


async def test_a_timeout_of_the_application_stays_its_own() -> None:
    with pytest.raises(TimeoutError, match="the application's own"):
        await ask(WholeAnswers(APP, lambda: 60), "/own")
