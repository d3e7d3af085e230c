"""Bedrock, imitated by MiniStack and answered by a real model, over the real client library."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from yarl import URL

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.errors import FailureKind, ModelUnusable
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.endpoints import Endpoint, Endpoints
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models.registry import open_client
from tests.integration.models.bedrock.bedrock_wire import isolate
from tests.servers.providers import llama_http, ministack
from tests.waiting import PATIENCE, waiting_for

pytestmark = [pytest.mark.connected, pytest.mark.long, pytest.mark.xdist_group("a real model")]

FEW = Parameters(max_tokens=12, temperature=0)


@pytest.fixture
def address() -> str:
    return ministack.SERVER.address()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, ministack.ROOT)


@asynccontextmanager
async def opened(
    address: str, name: str = "amazon.nova-lite-v1:0", **options: Any
) -> AsyncIterator[ModelClient]:
    model = TutorModel(id=f"bedrock/{name}", base_url=address, options=options)
    listed = Endpoint("imitation", origin(address), aws=True)
    client = open_client(model, endpoints=Endpoints((listed,)))
    try:
        async with waiting_for("the model"):
            yield client
    finally:
        await client.close()


async def what_the_model_itself_says(question: Question) -> dict[str, Any]:
    """The same question, put to the model server without Bedrock in between."""
    messages = [{"role": "system", "content": question.system_prompt}]
    for turn in question.earlier_turns:
        messages.append({"role": "user", "content": turn.student})
        messages.append({"role": "assistant", "content": turn.tutor})
    messages.append({"role": "user", "content": question.student_message})
    body = {"messages": messages, "max_tokens": 12, "temperature": 0}
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        url = f"{llama_http.SERVER.address()}/v1/chat/completions"
        answered = await http.post(url, json=body)
    return answered.json()


def connections_to(address: str) -> int:
    port = URL(address).port
    established = psutil.Process().net_connections("tcp")
    return sum(1 for each in established if each.raddr and each.raddr.port == port)


async def until(connections: int, address: str) -> None:
    """Wait until there are so many, well before an idle one would be closed."""
    async with waiting_for(f"{connections} connections", patience=10):
        while connections_to(address) != connections:  # noqa: ASYNC110 - the system tells nobody
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_text_and_the_token_counts_are_the_models_own(address, stream, turn):
    question = a_question(turn=turn, parameters=FEW)
    async with opened(address, stream=stream) as client:
        reply = await client.ask(question)
    expected = await what_the_model_itself_says(question)
    assert reply.text == expected["choices"][0]["message"]["content"]
    assert ministack.MADE_UP not in reply.text
    assert reply.usage.input_tokens == expected["usage"]["prompt_tokens"]
    assert reply.usage.visible_output_tokens == expected["usage"]["completion_tokens"] == 12
    assert (reply.status, reply.stop_reason) == (Status.OK, "end_turn")
    assert reply.model_version is None


async def test_only_a_streamed_reply_has_a_time_to_its_first_token(address):
    async with opened(address) as client:
        streamed = await client.ask(a_question(parameters=FEW))
    async with opened(address, stream=False) as client:
        whole = await client.ask(a_question(parameters=FEW))
    assert 0 <= streamed.first_token_ms <= streamed.latency_ms
    assert whole.first_token_ms is None
    assert whole.latency_ms > 0


async def test_an_arn_is_asked_in_its_own_region_whatever_the_environment_says(
    address, monkeypatch
):
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    arn = f"arn:aws:bedrock:us-west-2:{ministack.ACCOUNT}:inference-profile/us.amazon.nova-v1:0"
    async with opened(address, arn) as client:
        assert (await client.ask(a_question(parameters=FEW))).text
    async with opened(address, arn, region="eu-west-3") as client:  # the server can tell
        with pytest.raises(ModelUnusable, match="Invalid modelId ARN") as failure:
            await client.ask(a_question(parameters=FEW))
    assert failure.value.kind == FailureKind.BAD_REQUEST


async def test_two_models_of_a_region_share_their_connections_until_the_last_is_closed(address):
    question = a_question(parameters=FEW)
    async with opened(address, "amazon.nova-pro-v1:0") as one:
        async with opened(address, "amazon.nova-lite-v1:0") as other:
            first = await one.ask(question)
            assert (await other.ask(question)).text
            assert connections_to(address) == 1
        assert (await one.ask(question)).text == first.text
        assert connections_to(address) == 1
    await until(0, address)


async def test_models_that_are_first_asked_at_once_make_one_client(address, monkeypatch):
    from aiobotocore.session import AioSession

    made = []
    create = AioSession.create_client

    def counting(*args, **options):
        made.append(1)
        return create(*args, **options)

    monkeypatch.setattr(AioSession, "create_client", counting)
    async with opened(address, "a.one") as one, opened(address, "a.other") as other:
        asked = [client.ask(a_question(parameters=FEW)) for client in (one, other, one)]
        assert len({reply.text for reply in await asyncio.gather(*asked)}) == 1
    assert len(made) == 1


def test_a_process_may_use_several_event_loops(address):
    both_have_asked = threading.Barrier(2)

    async def ask() -> str:
        async with opened(address) as client:
            text = (await client.ask(a_question(parameters=FEW))).text
            both_have_asked.wait(PATIENCE)  # blocks the whole loop, and not the other
            assert (await client.ask(a_question(parameters=FEW))).text == text
            return text

    with ThreadPoolExecutor(2) as threads:
        loops = [threads.submit(asyncio.run, ask()) for _ in range(2)]
        assert len({loop.result(PATIENCE) for loop in loops}) == 1


async def test_a_cancelled_call_closes_its_connection_and_leaves_the_client_in_use(address):
    async with opened(address) as client:
        call = asyncio.create_task(client.ask(a_question(parameters=FEW)))
        await until(1, address)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(0, address)
        assert (await client.ask(a_question(parameters=FEW))).text


async def test_without_credentials_a_call_says_so_and_the_next_finds_those_that_came(
    address, monkeypatch
):
    async with opened(address) as client:
        for name in ministack.ROOT:
            monkeypatch.delenv(name)
        with pytest.raises(ModelUnusable, match="Unable to locate credentials") as failure:
            await client.ask(a_question(parameters=FEW))
        assert failure.value.kind == FailureKind.AUTH
        for name, value in ministack.ROOT.items():
            monkeypatch.setenv(name, value)
        assert (await client.ask(a_question(parameters=FEW))).text


@asynccontextmanager
async def a_user(address: str, *, may: str) -> AsyncIterator[dict[str, str]]:
    """The environment of a new user, whose signatures are checked."""
    from aiobotocore.session import get_session

    iam = get_session().create_client(
        "iam",
        region_name=ministack.REGION,
        endpoint_url=address,
        aws_access_key_id=ministack.ROOT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=ministack.ROOT["AWS_SECRET_ACCESS_KEY"],
    )
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": may, "Resource": "*"}],
    }
    async with iam as client:
        name = f"user-{may.replace(':', '-').replace('*', 'all')}"
        await client.create_user(UserName=name)
        await client.put_user_policy(
            UserName=name, PolicyName="policy", PolicyDocument=json.dumps(policy)
        )
        key = (await client.create_access_key(UserName=name))["AccessKey"]
        yield {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }


async def test_a_user_who_may_invoke_models_is_answered(address, monkeypatch):
    async with a_user(address, may="bedrock:*") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for stream in (True, False):
            async with opened(address, stream=stream) as client:
                assert (await client.ask(a_question(parameters=FEW))).text


async def test_a_user_without_permission_is_told_so(address, monkeypatch):
    async with a_user(address, may="s3:*") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        async with opened(address) as client:
            with pytest.raises(ModelUnusable, match="not authorized") as failure:
                await client.ask(a_question(parameters=FEW))
    assert failure.value.kind == FailureKind.AUTH


async def test_a_wrong_secret_key_is_told_of_without_any_key(address, monkeypatch):
    async with a_user(address, may="bedrock:Invoke*") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret-that-belongs-to-it")
        async with opened(address) as client:
            with pytest.raises(ModelUnusable, match="signature") as failure:
                await client.ask(a_question(parameters=FEW))
    assert failure.value.kind == FailureKind.AUTH
    for secret in (*environment.values(), "not-the-secret-that-belongs-to-it"):
        assert secret not in str(failure.value)
