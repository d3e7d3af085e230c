"""The runner as its package: it answers runs, and begins no call that cannot end in time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from aiobotocore.session import get_session

from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Limits,
    Manifest,
    Student,
    TutorModel,
)
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.student import student_run_id
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from tests.aws.lambda_runtime import FunctionFailed, Runtime, running
from tests.aws.place import Place, a_place
from tests.aws.records import event, poisoned, received
from tests.integration.dynamodb.faulty_gateway import ThrottlingGateway
from tests.integration.dynamodb.faulty_gateway import serving as gateway_serving
from tests.servers import aws_emulator
from tests.servers.providers.raw_server import RawServer, Request, completion, response, serving
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT
from tests.waiting import until, waiting_for

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


SHORT_SECONDS = 24.0
"""An invocation that has time for a short call, and little more."""

REPLY = completion("Why?", usage={"prompt_tokens": 1, "completion_tokens": 2})


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


async def test_a_batch_of_played_students_that_comes_twice_makes_each_message_once(
    runner: Runtime, place: Place
) -> None:
    kinds = ("opening", "ask", "closing")
    scenario = Scenario(
        id="played", dimension="student", prompt="What is 5 x 12?", follow_ups=("2", "3"),
        pressures=kinds,
    )  # fmt: skip
    tutor, student = (TutorModel(id=f"reference/{name}") for name in ("socratic", "student"))
    played = Experiment(
        manifest=Manifest(models=(tutor,), scenarios=(scenario,), student=Student(model=student)),
        created_at=TIME,
    )
    await request(place, played)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    for _ in range(2):
        assert runner.invoke(batch, seconds=300) == {"batchItemFailures": []}
    runs = [run.run_id for run in played.runs()]
    messages = await place.store.responses([student_run_id(run) for run in runs])
    answers = await place.store.responses(runs)
    for run in runs:
        said = [each.text for each in messages[student_run_id(run)]]
        assert [each.student_message for each in answers[run]] == [scenario.prompt, *said]
    calls = await place.store.calls(played.experiment_id)
    assert (calls.turns, calls.calls) == (len(runs) * 5, len(runs) * 5)
    unscored = await place.store.unscored_responses(played.experiment_id, 99)
    assert {each.run.run_id for each in unscored} == set(runs)


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


def quick_at(address: str) -> Experiment:
    """One run of a model at this address, whose call ends well within an invocation."""
    model = TutorModel(
        id="vllm/tutor",
        base_url=f"{address}/v1",
        endpoint="ours",
        options={"stream": False},
        limits=Limits(timeout_seconds=3, first_byte_timeout_seconds=3),
    )
    manifest = Manifest(models=(model,), scenarios=EXPERIMENT.manifest.scenarios, repeats=1)
    return Experiment(manifest=manifest, created_at=TIME)


async def stored_once(
    runtime: Runtime, place: Place, batch: dict[str, Any], experiment: Experiment
) -> None:
    """Invoke the function again; the runs are stored and published after one call each."""
    assert await asyncio.to_thread(runtime.invoke, batch, seconds=300) == {"batchItemFailures": []}
    runs = [run.run_id for run in experiment.runs()]
    assert set(await place.store.responses(runs)) == set(runs), runtime.log
    assert await place.broker.depth(JUDGE_RESPONSE_RECORDED.name)
    assert (await place.store.calls(experiment.experiment_id)).turns == len(runs)


@pytest.fixture
async def throttling(place: Place) -> AsyncIterator[ThrottlingGateway]:
    """A gateway before DynamoDB, which throttles on demand."""
    async with gateway_serving(ThrottlingGateway(aws_emulator.SERVER.address())) as gateway:
        yield gateway


class Tutor:
    """A model that replies when it may."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.may_reply = asyncio.Event()

    async def answer(self, _: Request, writer: asyncio.StreamWriter) -> None:
        self.called.set()
        await self.may_reply.wait()
        writer.write(response("200 OK", REPLY, "Content-Type: application/json"))


@pytest.fixture
def tutor() -> Tutor:
    return Tutor()


@pytest.fixture
async def provider(tutor: Tutor) -> AsyncIterator[RawServer]:
    async with serving(tutor.answer) as provider:
        yield provider


@pytest.fixture
async def throttled(
    packages: Path,
    tmp_path: Path,
    place: Place,
    throttling: ThrottlingGateway,
    provider: RawServer,
) -> AsyncIterator[Runtime]:
    """The runner behind that gateway."""
    table = place.store_url.partition("?")[0]
    environment = {
        **place.environment,
        "SOCRATIC_STORE_URL": f"{table}?endpoint={quote(throttling.url, safe='')}",
        "SOCRATIC_ENDPOINTS": json.dumps({"ours": provider.address}),
    }
    with running(packages, "runner", HANDLER, tmp_path, environment) as runtime:
        opened = event([poisoned(RUNNER_RUN_REQUESTED.name)])
        await asyncio.to_thread(runtime.invoke, opened, seconds=300)
        yield runtime


async def test_a_throttled_table_neither_delays_the_answer_nor_repeats_a_call(
    throttled: Runtime,
    place: Place,
    throttling: ThrottlingGateway,
    tutor: Tutor,
    provider: RawServer,
) -> None:
    experiment = quick_at(provider.address)
    await request(place, experiment)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    async with waiting_for("both invocations"), asyncio.TaskGroup() as tasks:
        invoking = asyncio.to_thread(throttled.invoke, batch, seconds=SHORT_SECONDS)
        first = tasks.create_task(invoking)
        await tutor.called.wait()
        throttling.throttles = True
        tutor.may_reply.set()
        assert await first == {"batchItemFailures": []}
    throttling.throttles = False
    again = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    assert len(again["Records"]) == 1, throttled.log
    await stored_once(throttled, place, again, experiment)
    assert len(provider.requests) == 1, throttled.log


@pytest.mark.parametrize("unread", [True, False], ids=["reply unread", "reply not stored"])
async def test_an_environment_that_was_frozen_past_its_deadline_loses_and_repeats_nothing(
    throttled: Runtime,
    place: Place,
    throttling: ThrottlingGateway,
    tutor: Tutor,
    provider: RawServer,
    unread: bool,
) -> None:
    experiment = quick_at(provider.address)
    await request(place, experiment)
    batch = await received(place.broker_url, RUNNER_RUN_REQUESTED.name)
    async with waiting_for("the invocation"):
        ends_at = time.time() + SHORT_SECONDS
        invoking = asyncio.to_thread(throttled.invoke, batch, seconds=SHORT_SECONDS)
        first = asyncio.create_task(invoking)
        await tutor.called.wait()
        if not unread:
            throttling.throttles = True
            tutor.may_reply.set()
            await until(throttling.refusals, bool, "a reply that waits for the table")
        with throttled.frozen():
            tutor.may_reply.set()
            throttling.throttles = False
            await until(now, lambda at: at > ends_at, "the deadline", patience=2 * SHORT_SECONDS)
        with pytest.raises(FunctionFailed, match="too late"):
            await first
    # SQS delivers again what Lambda heard nothing of.
    await stored_once(throttled, place, batch, experiment)
    assert len(provider.requests) == 1, throttled.log


async def now() -> float:
    """The time of the clock."""
    return time.time()


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
