"""The scheduler as its package: it plans a week once, and requests again what was lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from botocore.session import get_session

from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from tests.aws.lambda_runtime import FunctionFailed, Runtime, running
from tests.aws.place import Place, a_place
from tests.aws.records import received
from tests.servers import aws_emulator, dynamodb
from tests.waiting import block_until

HANDLER = "socratic_curator.entrypoints.scheduler_function.handler"
PLAN = {"task": "plan"}
RECONCILE = {"task": "reconcile"}
MODELS = ["reference/socratic"]
RUNS = 15


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_place(WORK_QUEUES, BROADCASTS) as place:
        yield place


@pytest.fixture
async def config() -> AsyncIterator[str]:
    """The address of a configuration in S3."""
    async with dynamodb.new_bucket() as bucket:
        client = get_session().create_client(
            "s3",
            endpoint_url=aws_emulator.SERVER.address(),
            region_name=aws_emulator.REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        where = {"Bucket": bucket, "Key": "config.json"}
        body = json.dumps({"models": MODELS, "repeats": 1}).encode()
        client.put_object(**where, Body=body)
        yield f"s3://{bucket}/config.json"
        client.delete_object(**where)


@pytest.fixture
def scheduler(packages: Path, tmp_path: Path, place: Place, config: str) -> Iterator[Runtime]:
    environment = {
        **place.environment,
        "SOCRATIC_CONFIG_OBJECT": config,
        "SOCRATIC_CURATOR_QUIET": "1",
    }
    with running(packages, "curator", HANDLER, tmp_path, environment) as runtime:
        yield runtime


async def test_a_week_that_is_planned_twice_is_one_experiment(
    scheduler: Runtime, place: Place
) -> None:
    planned = scheduler.invoke(PLAN)
    assert (planned["planned"], planned["requested"]) == (RUNS, RUNS)
    with scheduler.frozen():
        progress = await place.store.progress(planned["experiment"])
    assert (progress.planned, progress.done) == (RUNS, 0)
    assert scheduler.invoke(PLAN)["experiment"] == planned["experiment"]
    assert (await place.store.count_experiments()).running == 1


async def test_lost_requests_are_sent_again(scheduler: Runtime, place: Place) -> None:
    scheduler.invoke(PLAN)
    while (await received(place.broker_url, RUNNER_RUN_REQUESTED.name))["Records"]:
        pass  # what is received and never deleted is in nobody's hand: lost for this test
    sent = block_until(lambda: scheduler.invoke(RECONCILE), "lost runs to be requested again")
    assert sent == {"runs": RUNS}
    assert await place.broker.depth(RUNNER_RUN_REQUESTED.name)


def test_a_missing_configuration_is_named(
    packages: Path, tmp_path: Path, place: Place, config: str
) -> None:
    absent = config.replace("config.json", "absent.json")
    environment = {**place.environment, "SOCRATIC_CONFIG_OBJECT": absent}
    with (
        running(packages, "curator", HANDLER, tmp_path, environment) as runtime,
        pytest.raises(FunctionFailed, match=r"absent\.json"),
    ):
        runtime.invoke(PLAN)
