"""The runner as its package: it answers runs, and begins no call that cannot end in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from aiobotocore.session import get_session

from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.events.message import to_message
from socratic_bench.events.run_requested import RunRequested
from tests.aws.lambda_runtime import Runtime, running
from tests.aws.place import Place, a_place
from tests.aws.records import event, poisoned, received
from tests.servers import aws_emulator
from tests.servers.providers.raw_server import Request, completion, response, serving
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT

QUEUES = (RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED)
RUNS = [run.run_id for run in EXPERIMENT.runs()]
SLOW = Experiment(
    manifest=Manifest(
        models=(TutorModel(id="reference/socratic", options={"latency_ms": 100}),),
        scenarios=EXPERIMENT.manifest.scenarios,
        repeats=2,
    ),
    created_at=TIME,
)
"""The same, but a call takes time, and may take a minute: the model's usual timeout."""


def called_at(address: str, occasion: str) -> Experiment:
    """The same with a model at this address, whose key is a secret."""
    model = TutorModel(
        id="vllm/tutor", base_url=f"{address}/v1", endpoint="ours", options={"stream": False}
    )
    manifest = Manifest(models=(model,), scenarios=EXPERIMENT.manifest.scenarios, repeats=1)
    return Experiment(manifest=manifest, occasion=occasion, created_at=TIME)


async def request(place: Place, experiment: Experiment = EXPERIMENT) -> None:
    """Request every run of an experiment."""
    await place.store.register(experiment)
    requests = [RunRequested.of(run, source="test", time=TIME) for run in experiment.runs()]
    await place.broker.publish([to_message(each) for each in requests])


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_place(QUEUES) as place:
        yield place


HANDLER = "socratic_runner.entrypoints.lambda_function.handler"


@pytest.fixture
def runner(packages: Path, tmp_path: Path, place: Place) -> Iterator[Runtime]:
    with running(packages, "runner", HANDLER, tmp_path, place.environment) as runtime:
        runtime.invoke(event([poisoned(RUNNER_RUN_REQUESTED.name)]), seconds=300)
        yield runtime


async def test_it_stores_and_publishes_the_replies_to_a_batch(
    runner: Runtime, place: Place
) -> None:
    await request(place)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    assert runner.invoke(batch, seconds=300) == {"batchItemFailures": []}
    assert set(await place.store.responses(RUNS)) == set(RUNS)
    assert await place.broker.depth(JUDGE_RESPONSE_RECORDED.name)


async def test_a_batch_that_comes_twice_is_called_once(runner: Runtime, place: Place) -> None:
    await request(place)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    for _ in range(2):
        assert runner.invoke(batch, seconds=300) == {"batchItemFailures": []}
    assert (await place.store.calls(EXPERIMENT.experiment_id)).turns == len(RUNS)


async def test_a_call_that_cannot_end_in_time_is_not_begun_and_its_message_comes_back(
    runner: Runtime, place: Place
) -> None:
    await request(place, SLOW)
    runs = {run.run_id for run in SLOW.runs()}
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    assert runner.invoke(batch, seconds=15) == {"batchItemFailures": []}
    assert (await place.store.calls(SLOW.experiment_id)).turns == 0
    again = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    assert runner.invoke(again, seconds=300) == {"batchItemFailures": []}
    assert set(await place.store.responses(list(runs))) == runs


async def test_while_a_slow_model_is_waited_for_other_messages_are_taken(
    runner: Runtime, place: Place
) -> None:
    slow = Experiment(
        manifest=Manifest(
            models=(TutorModel(id="reference/socratic", options={"latency_ms": 5_000}),),
            scenarios=EXPERIMENT.manifest.scenarios,
            repeats=1,
        ),
        created_at=TIME,
    )
    await request(place, slow)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    await request(place)
    assert await place.broker.depth(RUNNER_RUN_REQUESTED.name)
    assert runner.invoke(batch, seconds=300) == {"batchItemFailures": []}
    runs = [*RUNS, *(run.run_id for run in slow.runs())]
    assert set(await place.store.responses(runs)) == set(runs)
    assert await place.broker.depth(RUNNER_RUN_REQUESTED.name) == 0
    assert await place.broker.depth(JUDGE_RESPONSE_RECORDED.name)


async def test_it_goes_on_after_it_was_frozen(runner: Runtime, place: Place) -> None:
    with runner.frozen():
        await request(place)
        batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    assert runner.invoke(batch, seconds=300) == {"batchItemFailures": []}
    assert set(await place.store.responses(RUNS)) == set(RUNS)


async def test_a_changed_key_is_read_again_within_the_batch_that_needs_it(
    packages: Path, tmp_path: Path, place: Place
) -> None:
    accepted, refused = "sk-first-of-a-test", []

    async def answer(asked: Request, writer: asyncio.StreamWriter) -> None:
        if asked.headers["authorization"] == f"Bearer {accepted}":
            body = completion("Why?", usage={"prompt_tokens": 1, "completion_tokens": 2})
            writer.write(response("200 OK", body, "Content-Type: application/json"))
        else:
            refused.append(asked.headers["authorization"])
            writer.write(response("401 Unauthorized", b"{}"))

    name = f"socratic-keys/endpoints/{uuid4().hex}"
    environment = {**place.environment, "SOCRATIC_ENDPOINT_SECRETS": json.dumps({"ours": name})}
    where = {"endpoint_url": aws_emulator.SERVER.address(), "region_name": aws_emulator.REGION}
    async with (
        serving(answer) as provider,
        get_session().create_client("secretsmanager", **where) as secrets,
    ):

        def secret() -> str:
            return json.dumps({"origin": provider.address, "secret": accepted})

        await secrets.create_secret(Name=name, SecretString=secret())
        with running(packages, "runner", HANDLER, tmp_path, environment) as runtime:
            for occasion in ("before", "after"):
                experiment = called_at(provider.address, occasion)
                await request(place, experiment)
                batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
                answered = await asyncio.to_thread(runtime.invoke, batch, seconds=300)
                assert answered == {"batchItemFailures": []}
                runs = [run.run_id for run in experiment.runs()]
                assert set(await place.store.responses(runs)) == set(runs), runtime.log
                accepted = "sk-second-of-a-test"
                await secrets.put_secret_value(SecretId=name, SecretString=secret())
            assert "sk-" not in runtime.log
    assert set(refused) == {"Bearer sk-first-of-a-test"}
    assert not await place.broker.depth(CURATOR_RUN_FAILED.name)
