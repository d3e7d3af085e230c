"""A week on the deployed stage ends with the right cells, whatever AWS does to it meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.aws.deployment.faulty_endpoint import SEND, At, Crash, FaultyEndpoint
from tests.aws.deployment.stage import QUEUES, FunctionFailed, Operator, function, week_of
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.waiting import until

PATIENCE = 600

THROTTLED = "the table takes no more requests for now"
SLOW = "did not answer within"

COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")

CRASHES = (
    Crash(At("runner", SEND, 3), done=False),
    Crash(At("runner", SEND, 9), done=True),
    Crash(At("judge", SEND, 3), done=False),
    Crash(At("curator", "TransactWriteItems", 3), done=True),
)


@contextmanager
def reached_through(stage: Operator, address: str) -> Iterator[None]:
    """Have every function but the API's reach AWS at this address, and lost work found soon."""
    client = stage.client("lambda")
    before = {}
    for name in ("runner", "judge", "curator", "scheduler"):
        settings = client.get_function_configuration(FunctionName=function(name))
        variables = settings["Environment"]["Variables"]
        before[name] = variables, stage.live_version(name)
        change = {
            "AWS_ENDPOINT_URL": f"{address}/{name}",
            "SOCRATIC_CURATOR_QUIET": "2",
            # A rollback finds the versions of a release by its name.
            "SOCRATIC_RELEASE": "0.1.0-bad-day",
        }
        client.update_function_configuration(
            FunctionName=function(name), Environment={"Variables": {**variables, **change}}
        )
        version = client.publish_version(FunctionName=function(name))["Version"]
        client.update_alias(FunctionName=function(name), Name="live", FunctionVersion=version)
    try:
        yield
    finally:
        for name, (variables, version) in before.items():
            client.update_alias(FunctionName=function(name), Name="live", FunctionVersion=version)
            client.update_function_configuration(
                FunctionName=function(name), Environment={"Variables": variables}
            )


def purge(stage: Operator) -> int:
    """Purge every work queue; returns how many messages they held, in flight ones too."""
    sqs = stage.client("sqs")
    held = 0
    for name in QUEUES:
        url = sqs.get_queue_url(QueueName=function(name))["QueueUrl"]
        told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        held += sum(int(count) for what, count in told.items() if what in COUNTS)
        sqs.purge_queue(QueueUrl=url)
    return held


async def test_the_cells_of_a_bad_day_are_those_of_a_quiet_one(stage: Operator, tmp_path) -> None:
    """Doubled, late and reordered messages, crashes, a throttled table, and all queues purged."""
    lost: list[int] = []
    faults = FaultyEndpoint(
        stage.endpoint,
        crashes=CRASHES,
        purge=(At("runner", SEND, 20), lambda: lost.append(purge(stage))),
        throttle_every=8,
    )
    store = stage.store()

    async def passed(task: str) -> dict[str, Any]:
        """The scheduler's answer; {} where a server refused it: its schedule calls again."""
        try:
            return stage.call_scheduler(task)
        except FunctionFailed as failed:
            if not any(why in str(failed) for why in (THROTTLED, SLOW)):
                raise
            return {}

    with faults.serving() as address, reached_through(stage, address):
        stage.configure(week_of("a bad day"))
        planned = await until(lambda: passed("plan"), bool, "a plan", patience=PATIENCE)
        experiment_id = planned["experiment"]

        async def look() -> bool:
            # As its schedule does each minute: the seconds without a change are fewer here, too.
            await passed("reconcile")
            experiment = await store.experiment(experiment_id)
            return experiment is not None and experiment.completed_at is not None

        try:
            await store.prepare()
            await until(look, bool, "the end of a bad day", patience=PATIENCE)
            cells = await cells_of(store, experiment_id)
            experiment = await store.experiment(experiment_id)
            progress = await store.progress(experiment_id)
        finally:
            await store.close()
    assert experiment is not None
    assert (progress.done, progress.failed) == (25 * 15, 0)
    assert cells == await cells_of_a_quiet_run(experiment, tmp_path)
    assert faults.told["crashes"] == len(CRASHES)
    assert len(lost) == 1
    assert lost[0] > 0
    assert min(faults.told["copies"], faults.told["throttles"]) >= 30
