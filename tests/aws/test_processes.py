"""The services as processes on AWS: the entry points of the images, with a task's settings."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from aiobotocore.session import get_session

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.addresses import open_store
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.stores.store import Store
from socratic_runner.entrypoints.endpoint_secrets import SecretEndpoints
from socratic_runner.settings import RunnerSettings
from tests.servers import aws_emulator, dynamodb, sqs
from tests.servers.http_process import free_port, start
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT
from tests.waiting import PATIENCE, block_until

KEY = "a-key-for-writing"


class Place(NamedTuple):
    """Queues and a table of this test alone."""

    settings: dict[str, str]
    broker: SqsBroker
    store: Store


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with sqs.namespace() as broker_url, dynamodb.new_table() as store_url:
        broker, store = SqsBroker(broker_url), open_store(store_url)
        await broker.declare(WORK_QUEUES)
        await store.prepare()
        settings = {"SOCRATIC_BROKER_URL": broker_url, "SOCRATIC_STORE_URL": store_url}
        yield Place({**aws_emulator.credentials(), **settings}, broker, store)
        await broker.close()
        await store.close()


def start_service(started: ExitStack, name: str, settings: dict[str, str]) -> str:
    """Start a service; returns the address of its readiness."""
    port = free_port()
    where = "SOCRATIC_PORT" if name == "api" else "SOCRATIC_HEALTH_PORT"
    command = [sys.executable, "-m", f"socratic_{name}"]
    return start(started, command, port, {**settings, where: str(port)})


async def test_runs_go_through_all_processes_on_aws(place: Place) -> None:
    await place.store.register(EXPERIMENT)
    with ExitStack() as started:
        start_service(started, "runner", place.settings)
        start_service(started, "judge", place.settings)
        start_service(
            started, "curator", {**place.settings, "SOCRATIC_CURATOR_RECONCILES": "false"}
        )
        # As behind the gateway, which names itself in `Host`.
        api = start_service(
            started,
            "api",
            {
                **aws_emulator.credentials(),
                "SOCRATIC_STORE_URL": place.settings["SOCRATIC_STORE_URL"],
                "SOCRATIC_API_KEYS": KEY,
                "SOCRATIC_ALLOWED_HOSTS": "gateway.example",
            },
        )
        requests = [RunRequested.of(run, source="test", time=TIME) for run in EXPERIMENT.runs()]
        await place.broker.publish([to_message(each) for each in requests])

        def shown() -> int:
            address = f"{api}/api/model-comparison?experiment=all"
            request = urllib.request.Request(address, headers={"Host": "gateway.example"})
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return sum(model["total_runs"] for model in json.load(answer)["models"])

        await asyncio.to_thread(
            block_until, lambda: shown() == len(requests), "all runs on the page"
        )


async def test_the_runner_reads_keys_of_endpoints_from_secrets() -> None:
    name = "socratic-processes/endpoints/openai"
    where = {"endpoint_url": aws_emulator.SERVER.address(), "region_name": aws_emulator.REGION}
    given = {"origin": "https://api.openai.com", "secret": "sk-of-a-test"}
    with pytest.MonkeyPatch.context() as environment:
        for variable, value in aws_emulator.environment().items():
            environment.setenv(variable, value)
        async with get_session().create_client("secretsmanager", **where) as client:
            await client.create_secret(Name=name, SecretString=json.dumps(given))
        endpoints = SecretEndpoints(RunnerSettings(endpoint_secrets={"openai": name}))
        [endpoint] = (await endpoints.read(float("-inf"))).listed
    assert (endpoint.name, endpoint.origin) == ("openai", "https://api.openai.com")
    assert endpoint.key is not None
