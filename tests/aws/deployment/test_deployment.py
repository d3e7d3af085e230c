"""A stage is deployed, updated and rolled back, with the programs that a person runs.

The emulator takes CDK's templates and runs the packages: HTTP API, queues, functions and table. It
checks no permissions, and knows no budgets.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.events.codec import to_message
from socratic_bench.planning.config_file.config import parse_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.planning.plan import resume
from socratic_bench.ports.stores.store import Store
from tests.aws.deployment.stage import BUCKET, CONFIG, Operator, changed, week_of
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.waiting import until

PATIENCE = 300
SECOND = "0.1.0-second"


async def request(stage: Operator, store: Store, experiment: Experiment, runs: Sequence[Run]):
    """Request a part of an experiment."""
    broker = SqsBroker(stage.broker_url)
    try:
        await broker.declare(WORK_QUEUES)

        async def publish(events):
            await broker.publish([to_message(event) for event in events])

        await resume(experiment, runs, store, publish, clock=SystemClock())
    finally:
        await broker.close()


async def done(store: Store, experiment: Experiment, runs: int) -> None:
    """Wait until so many runs are done."""

    async def look() -> int:
        return (await store.progress(experiment.experiment_id)).done

    await until(look, lambda seen: seen >= runs, f"{runs} runs that are done", patience=PATIENCE)


async def test_a_judge_is_deployed_and_rolled_back_while_an_experiment_runs(stage, tmp_path):
    """Each part of the experiment meets another judge; the cells do not tell."""
    config = week_of("independent deploys")
    parsed = parse_config(
        json.dumps(config), name="config", base_folder=None, catalogue=RegisteredModels()
    )
    once = stage.versions()
    second = changed(stage.packages, tmp_path / "second", SECOND)
    store = stage.store()
    try:
        await store.prepare()
        experiment = await store.register(parsed.experiment(SystemClock().now()))
        runs = list(experiment.runs())
        assert len(runs) == 25 * 15
        parts = [runs[part::4] for part in range(4)]

        await request(stage, store, experiment, parts[0])
        await done(store, experiment, 1)
        stage.deploy(second, "--service", "judge")
        after = stage.versions()
        assert after["judge"] != once["judge"]
        assert {**after, "judge": once["judge"]} == once

        await request(stage, store, experiment, parts[1])
        await done(store, experiment, len(parts[0]) + len(parts[1]))
        await request(stage, store, experiment, parts[2])
        told = stage.rollback("--service", "judge", "--version", stage.release)
        assert "judge" in told
        assert stage.versions() == once

        # The schedule plans the week twice: what nobody requested before is done, and once only.
        stage.configure(config)
        planned = [stage.call_scheduler("plan") for _ in range(2)]
        assert {each["experiment"] for each in planned} == {experiment.experiment_id}
        await done(store, experiment, len(runs))
        cells = await cells_of(store, experiment.experiment_id)
        assert (await store.progress(experiment.experiment_id)).failed == 0
    finally:
        await store.close()
    assert cells == await cells_of_a_quiet_run(experiment, tmp_path)

    _, answer = stage.request(f"/api/model-comparison?experiment={experiment.experiment_id}")
    assert {each["model_id"]: each["total_runs"] for each in answer["models"]} == dict.fromkeys(
        config["models"], 15
    )


def test_a_stage_is_updated_and_rolled_back(stage: Operator, tmp_path: Path) -> None:
    first, later = stage.release, "0.1.0-later"
    packages = changed(stage.packages, tmp_path / "later", later)
    config = tmp_path / "config.json"

    def configured(name: str) -> str:
        config.write_text(json.dumps(week_of(name)))
        return name

    def occasion() -> str:
        stored = stage.client("s3").get_object(Bucket=BUCKET, Key=CONFIG)
        return str(json.load(stored["Body"])["occasion"])

    configured("earlier")
    stage.deploy(stage.packages, "--config", config)
    assert stage.release_of_answers() == first
    before = stage.live_version("api")
    configured("later")
    stage.deploy(packages, "--config", config)
    assert stage.release_of_answers() == later
    assert occasion() == "later"

    stage.rollback("--version", first)
    assert stage.release_of_answers() == first
    assert stage.live_version("api") == before
    assert occasion() == "earlier"

    # And forward again: the earlier and the later version are both kept.
    stage.rollback("--version", later)
    assert stage.release_of_answers() == later
