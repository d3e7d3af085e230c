"""The judge as its package, driven by AWS's own runtime client: events in, partial failures out."""

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.consuming.queues import CURATOR_RESPONSE_SCORED, JUDGE_RESPONSE_RECORDED
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response
from socratic_bench.events.codec import decode, to_message
from socratic_bench.events.event_types import ResponseRecorded
from tests.aws.lambda_runtime import FunctionFailed, running
from tests.aws.records import event, poisoned, received
from tests.servers import aws_emulator, sqs
from tests.unit.events.examples import RUN, example_events
from tests.waiting import waiting_for

QUEUES = (JUDGE_RESPONSE_RECORDED, CURATOR_RESPONSE_SCORED)
HANDLER = "socratic_judge.entrypoints.lambda_function.handler"


@pytest.fixture
async def url():
    async with sqs.namespace() as address:
        yield address


@pytest.fixture
async def broker(url):
    broker = SqsBroker(url)
    await broker.declare(QUEUES)
    yield broker
    await broker.close()


@pytest.fixture
def judge(packages, tmp_path, url):
    environment = {
        **aws_emulator.credentials(),
        "SOCRATIC_BROKER_URL": url,
        "SOCRATIC_STAGE": "test",
    }
    with running(packages, "judge", HANDLER, tmp_path, environment) as runtime:
        yield runtime


def id_of(number):
    """The id that a plan gives to a repeat of the example."""
    return run_id(RUN.experiment_id, RUN.model_id, RUN.scenario_id, number)


async def publish(broker, count):
    response = example_events()["response.recorded"].data
    assert isinstance(response, Response)
    runs = [
        response.run.model_copy(update={"run_id": id_of(number), "repeat": number})
        for number in range(1, count + 1)
    ]
    events = [
        ResponseRecorded.of(response.model_copy(update={"run": run}), source="test") for run in runs
    ]
    await broker.publish([to_message(each) for each in events])


async def scored(broker, count):
    taken = []
    async with (
        waiting_for("scores"),
        broker.consume(CURATOR_RESPONSE_SCORED.name, prefetch=100) as consumer,
    ):
        while len(taken) < count:
            deliveries = await consumer.receive(100)
            taken += [decode(each.message.body) for each in deliveries]
            await consumer.ack(deliveries)
    return taken


async def test_it_scores_a_batch_and_names_no_record_as_failed(judge, broker, url):
    await publish(broker, 3)
    answer = judge.invoke(await received(url, JUDGE_RESPONSE_RECORDED.name))
    assert answer == {"batchItemFailures": []}
    assert {each.data.run.run_id for each in await scored(broker, 3)} == {
        id_of(1),
        id_of(2),
        id_of(3),
    }


async def test_a_poisoned_record_becomes_a_dead_letter_and_the_others_are_scored(
    judge, broker, url
):
    await publish(broker, 2)
    batch = await received(url, JUDGE_RESPONSE_RECORDED.name)
    batch["Records"].insert(0, poisoned(JUDGE_RESPONSE_RECORDED.name))
    assert judge.invoke(batch) == {"batchItemFailures": []}
    assert len(await scored(broker, 2)) == 2
    [dead] = await broker.dead_letters(JUDGE_RESPONSE_RECORDED.name)
    assert dead.message.body == b"{not an event"


async def test_it_works_on_after_it_was_frozen(judge, broker, url):
    for number in range(3):
        await publish(broker, 1 + number)
        batch = await received(url, JUDGE_RESPONSE_RECORDED.name)
        assert judge.invoke(batch) == {"batchItemFailures": []}
        with judge.frozen():
            await scored(broker, 1 + number)


async def test_without_time_it_gives_its_records_back(judge, broker, url):
    await publish(broker, 1)
    batch = await received(url, JUDGE_RESPONSE_RECORDED.name)
    judge.invoke(event([poisoned(JUDGE_RESPONSE_RECORDED.name)]))  # opens what it needs
    [record] = batch["Records"]
    answer = judge.invoke(batch, seconds=0.5)
    assert answer == {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
    assert judge.invoke(batch) == {"batchItemFailures": []}


async def test_it_writes_metrics_that_cloudwatch_reads(judge, broker, url):
    await publish(broker, 2)
    judge.invoke(await received(url, JUDGE_RESPONSE_RECORDED.name))
    [metrics] = [line for line in judge.lines() if "_aws" in line]
    [described] = metrics["_aws"]["CloudWatchMetrics"]
    assert described["Namespace"] == "SocraticBench"
    assert (metrics["Stage"], metrics["Service"]) == ("test", "judge")
    assert (metrics["RecordsHandled"], metrics["RecordsReturned"]) == (1, 0)
    assert {each["Name"] for each in described["Metrics"]} == {"RecordsHandled", "RecordsReturned"}


def test_a_missing_setting_is_named(packages, tmp_path):
    with (
        running(packages, "judge", HANDLER, tmp_path, aws_emulator.credentials()) as runtime,
        pytest.raises(FunctionFailed, match="SOCRATIC_BROKER_URL"),
    ):
        runtime.invoke(event([poisoned(JUDGE_RESPONSE_RECORDED.name)]))
