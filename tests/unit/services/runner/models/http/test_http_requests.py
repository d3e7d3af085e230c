"""The request for a question, by provider and option."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import JsonValue

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.errors import ModelUnusable
from socratic_bench.providers.endpoints import ANYWHERE, Endpoint, Endpoints, KeySource
from socratic_bench.testing.samples import EARLIER, a_question
from socratic_runner.models.http.client import HttpClient, Wire
from socratic_runner.models.registry import open_client
from tests.servers.providers.raw_server import Request, response, serving

PARAMETERS = Parameters(max_tokens=321, temperature=0.4, top_p=0.9)
QUESTION = a_question(turn=2, parameters=PARAMETERS)


def sent(model_id: str, **options: Any) -> dict[str, Any]:
    model = TutorModel(id=model_id, base_url="http://127.0.0.1:1", options=options)
    client = open_client(model, endpoints=ANYWHERE)
    assert isinstance(client, HttpClient)
    wire: Wire = client._wire
    return dict(wire.body(QUESTION))


def test_openai_is_asked_in_its_words():
    assert sent("openai/gpt-5/latest") == {
        "model": "gpt-5/latest",
        "messages": [
            {"role": "system", "content": QUESTION.system_prompt},
            {"role": "user", "content": EARLIER.student},
            {"role": "assistant", "content": EARLIER.tutor},
            {"role": "user", "content": QUESTION.student_message},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 321,
        "temperature": 0.4,
        "top_p": 0.9,
        "seed": QUESTION.seed,
    }


@pytest.mark.parametrize("provider", ["openai", "vllm", "anthropic"])
def test_a_model_may_have_another_name_at_its_service_than_in_the_benchmark(provider):
    assert sent(f"{provider}/short-prompt", model="the-model")["model"] == "the-model"


def test_anthropic_is_asked_in_its_words():
    assert sent("anthropic/claude") == {
        "model": "claude",
        "system": QUESTION.system_prompt,
        "messages": [
            {"role": "user", "content": EARLIER.student},
            {"role": "assistant", "content": EARLIER.tutor},
            {"role": "user", "content": QUESTION.student_message},
        ],
        "stream": True,
        "max_tokens": 321,
        "temperature": 0.4,
        "top_p": 0.9,
    }


@pytest.mark.parametrize(
    ("model_id", "has", "has_not"),
    [
        (
            "mistral/m",
            {"random_seed": QUESTION.seed, "max_tokens": 321},
            {"seed", "stream_options"},
        ),
        ("deepseek/m", {"max_tokens": 321}, {"seed"}),
        ("gemini/m", {"max_tokens": 321}, {"seed"}),
        ("ollama/m", {"seed": QUESTION.seed, "max_tokens": 321}, {"max_completion_tokens"}),
        ("openai-compatible/m", {"max_tokens": 321}, {"seed"}),
    ],
)
def test_a_provider_is_sent_what_it_knows(model_id: str, has: dict[str, Any], has_not: set[str]):
    body = sent(model_id)
    assert has.items() <= body.items()
    assert not has_not & body.keys()


def test_what_is_to_be_omitted_is_not_sent():
    omit = ["seed", "stream_options", "temperature", "top_p"]
    assert sent("openai/gpt", omit=omit).keys() == {
        "model",
        "messages",
        "stream",
        "max_completion_tokens",
    }
    omitted = sent("anthropic/claude", omit=["temperature", "top_p"])
    assert omitted.keys() == {"model", "system", "messages", "stream", "max_tokens"}


def test_extra_parameters_are_sent_and_replace_those_of_the_same_name():
    body = sent("openai/gpt", extra_body={"reasoning_effort": "low", "temperature": 1})
    assert (body["reasoning_effort"], body["temperature"]) == ("low", 1)
    body = sent("anthropic/claude", extra_body={"thinking": {"type": "disabled"}})
    assert body["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize("model_id", ["openai/gpt", "anthropic/claude"])
def test_without_streaming_none_is_asked_for(model_id: str):
    body = sent(model_id, stream=False)
    assert body["stream"] is False
    assert "stream_options" not in body


def test_the_limit_of_tokens_can_be_called_otherwise():
    body = sent("openai-compatible/m", max_tokens_field="max_completion_tokens")
    assert body["max_completion_tokens"] == 321
    assert "max_tokens" not in body


@pytest.mark.parametrize(
    ("provider", "usual"), [("vllm", "authorization"), ("anthropic", "x-api-key")]
)
async def test_the_key_goes_into_the_named_header_and_the_query_stays_behind_the_path(
    monkeypatch: pytest.MonkeyPatch, provider: str, usual: str
):
    monkeypatch.setenv("OUR_KEY", "0123456789abcdef")
    headers: JsonValue = {"X-Team": "tutors, all"}

    async def refuse(request: Request, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"error": f"no {request.headers['api-key']}"}).encode()
        writer.write(response("401 Unauthorized", body, "Content-Type: application/json"))

    async with serving(refuse) as server:
        ours = Endpoint("ours", server.address, KeySource(variable="OUR_KEY"))
        model = TutorModel(
            id=f"{provider}/m",
            base_url=f"{server.address}/openai/deployments/m/?api-version=2024-10-21",
            endpoint="ours",
            options={"stream": False, "key_header": "api-key", "headers": headers},
        )
        client = open_client(model, endpoints=Endpoints((ours,)))
        with pytest.raises(ModelUnusable) as refused:
            await client.ask(QUESTION)
        await client.close()
        [request] = server.requests
    assert request.line.startswith("POST /openai/deployments/m/")
    assert request.line.endswith("?api-version=2024-10-21 HTTP/1.1")
    assert request.headers["x-team"] == "tutors, all"
    assert (request.headers["api-key"], usual in request.headers) == ("0123456789abcdef", False)
    assert "0123456789abcdef" not in str(refused.value)
