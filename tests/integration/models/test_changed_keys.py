"""A key that is a secret of AWS is read when a call needs it, and again once it is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import FailureKind, InvalidSettings, ModelCallFailed, ModelUnusable
from socratic_bench.ports.models import ModelClient
from socratic_bench.testing.samples import a_question
from socratic_runner.entrypoints.endpoint_secrets import SecretEndpoints
from socratic_runner.settings import RunnerSettings
from tests.servers.providers.raw_server import RawServer, Request, completion, response, serving

FIRST, SECOND = "sk-first-of-a-test", "sk-second-of-a-test"


@dataclass
class Secrets:
    """A secret, and a provider that accepts one key."""

    server: RawServer
    stored: str = FIRST
    accepted: str = FIRST
    reads: int = 0
    error: str = ""
    refused: list[str] = field(default_factory=list)

    async def read(self, name: str) -> str:
        assert name == "the/secret"
        self.reads += 1
        await asyncio.sleep(0)
        if self.error:
            raise InvalidSettings(self.error)
        return json.dumps({"origin": self.server.address, "secret": self.stored})

    def client(self) -> ModelClient:
        settings = RunnerSettings(endpoint_secrets={"ours": "the/secret"})
        endpoints = SecretEndpoints(settings, read_secret=self.read)
        return endpoints.open_client(
            TutorModel(
                id="vllm/tutor",
                base_url=f"{self.server.address}/v1",
                endpoint="ours",
                options={"stream": False},
            )
        )

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        key = request.headers["authorization"].removeprefix("Bearer ")
        if key == self.accepted:
            body = completion("Why?", usage={"prompt_tokens": 1, "completion_tokens": 2})
            writer.write(response("200 OK", body, "Content-Type: application/json"))
        else:
            self.refused.append(key)
            writer.write(response("401 Unauthorized", b'{"error": {"message": "wrong key"}}'))


@pytest.fixture
async def secrets() -> AsyncIterator[Secrets]:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        await found.answer(request, writer)

    async with serving(answer) as server:
        found = Secrets(server)
        yield found


async def test_a_changed_key_is_used_in_the_call_that_the_old_one_was_refused_for(
    secrets: Secrets,
) -> None:
    client = secrets.client()
    assert secrets.reads == 0
    await client.ask(a_question())
    await client.ask(a_question())
    assert secrets.reads == 1
    secrets.stored = secrets.accepted = SECOND
    assert (await client.ask(a_question())).text == "Why?"
    assert (secrets.refused, secrets.reads) == ([FIRST], 2)
    await client.close()


async def test_calls_that_are_refused_together_read_the_secret_once(secrets: Secrets) -> None:
    client = secrets.client()
    await client.ask(a_question())
    secrets.stored = secrets.accepted = SECOND
    replies = await asyncio.gather(*(client.ask(a_question()) for _ in range(8)))
    assert {reply.text for reply in replies} == {"Why?"}
    assert secrets.reads == 2
    await client.close()


async def test_a_key_that_did_not_change_is_refused_once(secrets: Secrets) -> None:
    secrets.accepted = SECOND
    client = secrets.client()
    with pytest.raises(ModelUnusable) as refused:
        await client.ask(a_question())
    assert refused.value.kind is FailureKind.AUTH
    assert secrets.refused == [FIRST]
    await client.close()


async def test_a_secret_that_cannot_be_read_for_now_is_asked_for_again(secrets: Secrets) -> None:
    secrets.error = "cannot read secret the/secret: AWS answers ThrottlingException"
    client = secrets.client()
    with pytest.raises(ModelCallFailed, match="ThrottlingException") as failed:
        await client.ask(a_question())
    assert failed.value.retryable
    secrets.error = ""
    await client.ask(a_question())
    await client.close()


async def test_an_endpoint_without_a_secret_is_named(secrets: Secrets) -> None:
    settings = RunnerSettings(endpoint_secrets={"theirs": "the/secret"})
    endpoints = SecretEndpoints(settings, read_secret=secrets.read)
    model = TutorModel(id="vllm/tutor", base_url=f"{secrets.server.address}/v1", endpoint="ours")
    with pytest.raises(ModelUnusable, match="there is no endpoint 'ours'"):
        await endpoints.open_client(model).ask(a_question())


async def test_a_secret_of_another_form_is_named_without_its_content(secrets: Secrets) -> None:
    settings = RunnerSettings(endpoint_secrets={"ours": "the/secret"})

    async def no_json(_name: str) -> str:
        return f"not JSON {FIRST}"

    endpoints = SecretEndpoints(settings, read_secret=no_json)
    with pytest.raises(InvalidSettings, match="ours: its secret must be JSON") as wrong:
        await endpoints.read(float("-inf"))
    assert FIRST not in str(wrong.value)


async def test_a_model_without_an_address_needs_no_secret(secrets: Secrets) -> None:
    settings = RunnerSettings(endpoint_secrets={"ours": "the/secret"})
    endpoints = SecretEndpoints(settings, read_secret=secrets.read)
    assert endpoints.open_client(TutorModel(id="reference/socratic")).answers_at_once
    assert secrets.reads == 0
