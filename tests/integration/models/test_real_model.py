"""Both wire formats against a real language model, whose own tokenizer counts along."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

import pytest

from socratic_bench.domain.experiment.manifest import Parameters
from socratic_bench.errors import FailureKind
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import EARLIER, a_question
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.providers.llama_http import CACHING, NAME, SERVER
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.connected, pytest.mark.long, pytest.mark.xdist_group("a real model")]

FIXED = {"seed": 1}
SHORT = a_question(turn=2, parameters=Parameters(max_tokens=8, temperature=0))
WITH_AN_END = a_question(parameters=Parameters(max_tokens=50, temperature=0))


@pytest.fixture
async def server() -> str:
    return await asyncio.to_thread(SERVER.address)


@pytest.fixture(params=["llamacpp", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(
    open_model: OpenModel, server: str, provider: str, *, stream: bool, **extra: Any
) -> ModelClient:
    base_url = server if provider == "anthropic" else f"{server}/v1"
    extra_body = FIXED | extra
    return open_model(f"{provider}/{NAME}", base_url, stream=stream, extra_body=extra_body)


async def post(server: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    def call() -> dict[str, Any]:
        request = urllib.request.Request(
            f"{server}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    return await asyncio.to_thread(call)


def messages(question: Question) -> list[dict[str, str]]:
    said = [{"role": "system", "content": question.system_prompt}]
    for turn in question.earlier_turns:
        said.append({"role": "user", "content": turn.student})
        said.append({"role": "assistant", "content": turn.tutor})
    return [*said, {"role": "user", "content": question.student_message}]


async def input_tokens(server: str, question: Question) -> int:
    asked = {"messages": messages(question)}
    prompt = (await post(server, "/apply-template", asked))["prompt"]
    counted = await post(server, "/tokenize", {"content": prompt, "parse_special": True})
    return len(counted["tokens"])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_has_the_models_own_count_of_its_tokens(
    open_model: OpenModel, server: str, provider: str, stream: bool
):
    assert EARLIER in SHORT.earlier_turns
    reply = await opened(open_model, server, provider, stream=stream).ask(SHORT)
    assert (reply.status, reply.usage.visible_output_tokens) == (Status.TRUNCATED, 8)
    assert reply.usage.input_tokens == await input_tokens(server, SHORT)
    assert reply.model_version == NAME
    assert reply.latency_ms is not None
    assert (reply.first_token_ms is not None) == stream
    assert reply.first_token_ms is None or 0 < reply.first_token_ms <= reply.latency_ms


async def test_a_streamed_reply_is_the_one_that_comes_whole(
    open_model: OpenModel, server: str, provider: str
):
    streamed = await opened(open_model, server, provider, stream=True).ask(WITH_AN_END)
    whole = await opened(open_model, server, provider, stream=False).ask(WITH_AN_END)
    assert streamed.text == whole.text != ""
    assert streamed.usage == whole.usage
    assert (streamed.status, streamed.stop_reason) == (whole.status, whole.stop_reason)


async def test_both_formats_say_the_same_of_the_same_answer(open_model: OpenModel, server: str):
    one, other = [
        await opened(open_model, server, provider, stream=True).ask(SHORT)
        for provider in ("llamacpp", "anthropic")
    ]
    assert one.usage == other.usage
    assert one.status is other.status


async def test_a_finished_answer_counts_every_token_of_its_text(open_model: OpenModel, server: str):
    reply = await opened(open_model, server, "llamacpp", stream=True).ask(WITH_AN_END)
    counted = await post(server, "/tokenize", {"content": reply.text})
    # One more than the text has, for the token that ends it.
    end = 1 if reply.status is Status.OK else 0
    assert reply.usage.visible_output_tokens == len(counted["tokens"]) + end


@pytest.mark.parametrize("stream", [True, False])
async def test_input_read_from_the_cache_is_counted_in(
    open_model: OpenModel, provider: str, stream: bool
):
    server = await asyncio.to_thread(CACHING.address)
    client = opened(open_model, server, provider, stream=stream)
    for _ in range(2):
        reply = await client.ask(SHORT)
        assert reply.usage.input_tokens == await input_tokens(server, SHORT)
    asked = {"messages": messages(SHORT), "max_tokens": 1}
    usage = (await post(server, "/v1/chat/completions", asked))["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_a_question_beyond_the_context_fails_for_good(
    open_model: OpenModel, server: str, provider: str, stream: bool
):
    client = opened(open_model, server, provider, stream=stream)
    failure = await failure_of(client, SHORT._replace(student_message="word " * 3000))
    assert failure.kind == FailureKind.CONTEXT_TOO_LONG
    assert not failure.retryable
    assert (await client.ask(SHORT)).text


async def test_a_parameter_that_the_server_refuses_makes_the_model_unusable(
    open_model: OpenModel, server: str
):
    client = opened(open_model, server, "llamacpp", stream=True, temperature="warm")
    failure = await failure_of(client)
    assert failure.kind == FailureKind.BAD_REQUEST
    assert "temperature" in str(failure)


async def test_a_cancelled_call_stops_the_model(open_model: OpenModel, server: str):
    client = opened(open_model, server, "llamacpp", stream=True, ignore_eos=True)
    endless = a_question(parameters=Parameters(max_tokens=1800))
    call = asyncio.create_task(client.ask(endless))
    await until(lambda: busy(server), bool, "the model to begin")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: busy(server), lambda it: not it, "the model to stop")


async def busy(server: str) -> bool:
    def slots() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{server}/slots", timeout=PATIENCE) as response:
            answer: list[dict[str, Any]] = json.load(response)
        return answer

    return any(slot["is_processing"] for slot in await asyncio.to_thread(slots))
