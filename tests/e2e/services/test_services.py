"""Each service runs as a process, on RabbitMQ and PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from socratic_bench.adapters.brokers.batches import SHARES
from socratic_bench.addresses import open_broker
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from tests.e2e.experiments import submitted
from tests.e2e.service_processes import all_ready, started
from tests.servers.providers.endpoint import endpoint
from tests.servers.proxy import proxy
from tests.waiting import PATIENCE, until, waiting_for

pytestmark = pytest.mark.connected

ROOT = Path(__file__).parents[3]
KINDS = ("runner", "judge", "curator", "api")
REPEATS = 3
RUNS = 15 * REPEATS
HANDLED = {
    "runner-run-requested": RUNS,
    "judge-response-recorded": RUNS,
    "curator-response-scored": RUNS,
    "curator-run-failed": 0,
}
QUICK = {
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.01",
    "SOCRATIC_RUNNER_LEASE_MARGIN": "0.5",
    "SOCRATIC_RUNNER_BUSY_DELAY": "0.2",
}


@pytest.fixture
def pace():
    return QUICK


@pytest.fixture
async def broker(addresses):
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


def models(*, repeats=REPEATS, **options) -> str:
    limits = {key: options.pop(key) for key in ("timeout_seconds",) if key in options}
    entry = {"id": "reference/socratic", "options": options, "limits": limits}
    return json.dumps({"models": [entry], "repeats": repeats})


async def done(store, experiment_id, at_least=RUNS):
    """Wait until as many runs are done."""
    return await until(
        lambda: store.progress(experiment_id), lambda it: it.done >= at_least, f"{at_least} runs"
    )


async def asked(store, experiment_id, calls):
    """Wait until so many calls were begun."""
    return await until(
        lambda: store.calls(experiment_id), lambda it: it.calls >= calls, f"{calls} calls"
    )


async def stored(store, experiment_id) -> int:
    """How many responses are stored."""
    experiment = await store.experiment(experiment_id)
    return len(await store.responses({run.run_id for run in experiment.runs()}))


async def dead(broker) -> list[str]:
    return [letter.reason for q in WORK_QUEUES for letter in await broker.dead_letters(q.name)]


async def test_four_processes_carry_out_a_benchmark_and_drain_when_told_to(
    services_terminal, environment, store, broker
):
    async with all_ready(environment, *KINDS) as services:
        experiment_id = await submitted(services_terminal, models())
        progress = await done(store, experiment_id)
        [shown] = (await services["api"].get("/api/model-comparison")).json()["models"]
        for queue, messages in HANDLED.items():
            # A service settles a message after others have seen what came of it.
            await services[queue.partition("-")[0]].until_metric_is(
                messages, "socratic_messages_total", queue=queue, outcome="handled"
            )
        for name in ("socratic_queue_depth", "socratic_dead_letters"):
            await services["api"].until_metric_is(0, name, queue="runner-run-requested")
        for service in services.values():
            await service.until_metric_is(1, "socratic_ready")
        assert await services["api"].metric("socratic_experiments", state="exhausted") == 0
        assert await services["curator"].metric("socratic_reconciled_total", what="runs") == 0
        for service in services.values():
            service.terminate()
        codes = {kind: await service.ended() for kind, service in services.items()}

    assert codes == dict.fromkeys(KINDS, 0)
    assert (progress.done, progress.failed) == (RUNS, 0)
    assert shown["total_runs"] == RUNS
    assert (await store.calls(experiment_id)).calls == RUNS
    assert await dead(broker) == []
    for service in services.values():
        assert [line["event"] for line in service.logs] == [
            "serving",
            "ready",
            "draining",
            "stopped",
        ], service.text


async def test_the_api_says_how_much_waits_for_runners_though_it_serves_no_model(
    services_terminal, environment
):
    async with all_ready(environment, "api") as services:
        await submitted(services_terminal, models())
        await until(
            lambda: services["api"].metric("socratic_queue_depth", queue="runner-run-requested"),
            lambda waiting: waiting == SHARES,
            "the batches of all runs",
        )


@pytest.mark.parametrize(
    ("kind", "environment", "named"),
    [
        ("runner", {}, "SOCRATIC_BROKER_URL"),
        ("judge", {}, "SOCRATIC_BROKER_URL"),
        ("curator", {"SOCRATIC_BROKER_URL": "amqp://host/"}, "SOCRATIC_STORE_URL"),
        ("judge", {"SOCRATIC_BROKER_URL": "kafka://me:hunter2@host/"}, "SOCRATIC_BROKER_URL"),
        (
            "curator",
            {
                "SOCRATIC_BROKER_URL": "amqp://host/",
                "SOCRATIC_STORE_URL": "mysql://me:hunter2@host/",
            },
            "SOCRATIC_STORE_URL",
        ),
        (
            "judge",
            {"SOCRATIC_BROKER_URL": "amqp://host/", "SOCRATIC_HEALTH_HOST": "203.0.113.1"},
            "SOCRATIC_HEALTH_PORT",
        ),
        ("api", {"SOCRATIC_HOST": "203.0.113.1"}, "SOCRATIC_API_KEYS"),
        ("api", {"SOCRATIC_HOST": "203.0.113.1", "SOCRATIC_API_KEYS": "a-key"}, "SOCRATIC_PORT"),
    ],
)
async def test_a_wrong_setting_ends_a_service_with_2_and_a_sentence_that_names_it(
    kind, environment, named
):
    async with started(kind, environment) as service:
        assert await service.ended() == 2
    [line] = service.logs
    assert line["event"].startswith(f"socratic_{kind}: ")
    assert named in line["event"]
    assert "hunter2" not in service.text


async def gives_up_to_start(kind, missing, environment):
    environment = {**environment, "SOCRATIC_START_DEADLINE": "2"}
    async with started(kind, environment) as service:
        assert await service.ended() == 1
    last = service.logs[-1]
    assert last["event"] == "ended"
    assert last["reason"].startswith(f"the {missing} did not answer within 2 s: ")
    assert "hunter2" not in service.text


async def test_a_broker_that_never_comes_ends_the_start_with_1_and_one_sentence():
    nowhere = {"SOCRATIC_BROKER_URL": "amqp://me:hunter2@127.0.0.1:9/"}
    await gives_up_to_start("judge", "broker", nowhere)


async def test_a_store_that_never_comes_ends_the_start_with_1_and_one_sentence(addresses, broker):
    nowhere = {"SOCRATIC_STORE_URL": "postgresql://me:hunter2@127.0.0.1:9/db"}
    await gives_up_to_start("curator", "store", {**addresses, **nowhere})


async def test_a_service_that_waits_for_the_broker_is_starting_and_stops_when_told():
    nowhere = {"SOCRATIC_BROKER_URL": "amqp://127.0.0.1:9/"}
    async with started("judge", nowhere) as service:
        await service.logged("no broker")
        starting = await service.get("/readyz")
        service.terminate()
        assert await service.ended() == 0
    assert (starting.status_code, starting.json()["reason"]) == (503, "the service is starting")


@pytest.mark.parametrize("missing", [pytest.param("broker", marks=pytest.mark.long), "store"])
async def test_a_server_that_goes_down_and_comes_back_loses_nothing(
    services_terminal, addresses, environment, store, broker, missing
):
    name = f"SOCRATIC_{missing.upper()}_URL"
    server = urlsplit(addresses[name])
    async with proxy(server.hostname, server.port) as between:
        credentials = server.netloc.rpartition("@")[0]
        through = server._replace(netloc=f"{credentials}@127.0.0.1:{between.port}").geturl()
        async with all_ready({**environment, name: through}, *KINDS[:3]) as services:
            # A lease counts as a call, and one whose commit is cut off may be counted twice: with
            # calls that take long, none is being taken at the moment when the server goes.
            config = models(repeats=1, latency_ms=1_500)
            experiment_id = await submitted(services_terminal, config)
            await done(store, experiment_id, at_least=1)
            await between.stop()
            unready = await services["curator"].until_ready_is(503)
            alive = await services["curator"].get("/healthz")
            await services["runner"].until_ready_is(503)
            await between.start()
            await services["curator"].until_ready_is(200)
            progress = await done(store, experiment_id, at_least=15)
            for service in services.values():
                service.terminate()
            codes = [await service.ended() for service in services.values()]

    assert unready.json()["reason"] == f"the {missing} does not answer"
    assert alive.status_code == 200
    assert (progress.done, progress.failed) == (15, 0)
    assert (await store.calls(experiment_id)).calls == 15
    assert await dead(broker) == []
    assert codes == [0, 0, 0]


async def test_calls_in_hand_are_finished_before_a_runner_ends(
    services_terminal, environment, store
):
    async with endpoint() as model, all_ready(environment, "runner") as services:
        runner = services["runner"]
        model.hold()
        experiment_id = await submitted(services_terminal, model.config())
        await with_eight_calls_in_hand(model)
        runner.terminate()
        await runner.logged("draining")
        await model.release()
        assert await runner.ended() == 0
    assert await stored(store, experiment_id) == len(model.asked) == len(model.answered)
    assert (await store.calls(experiment_id)).calls == len(model.asked)


async def with_eight_calls_in_hand(model):
    """Wait until a runner makes eight calls at once; the first call to a model is alone."""
    await model.until_asked(1)
    await model.answer_next(1)
    await model.until_asked(9)


async def test_what_takes_longer_than_the_drain_deadline_is_given_back(
    services_terminal, environment, store, broker
):
    impatient = {**environment, "SOCRATIC_DRAIN_DEADLINE": "0.2"}
    async with endpoint() as model, all_ready(impatient, "runner") as services:
        runner = services["runner"]
        model.hold()
        await submitted(services_terminal, model.config())
        await model.until_asked(1)
        runner.terminate()
        assert await runner.ended() == 0
    assert any(line["event"].startswith("not drained in time") for line in runner.logs)
    await until(
        lambda: broker.depth("runner-run-requested", "vllm/endpoint"),
        bool,
        "the runs in their queue again",
    )


@pytest.mark.long
async def test_the_runs_of_a_killed_runner_come_through_long_before_its_leases_run_out(
    services_terminal, environment, store, broker
):
    async with endpoint() as model, all_ready(environment, *KINDS[:3]) as services:
        model.hold()
        config = model.config(repeats=1, timeout_seconds=10 * PATIENCE)
        experiment_id = await submitted(services_terminal, config)
        await model.until_asked(1)  # the runner has all the runs in hand
        async with started("runner", environment) as second:
            await second.ready()
            await with_eight_calls_in_hand(model)
            services["runner"].kill()
            assert await services["runner"].ended() == -signal.SIGKILL
            calls = (await store.calls(experiment_id)).calls
            answered = await stored(store, experiment_id)
            await model.release()
            progress = await done(store, experiment_id, at_least=15)
    assert (progress.done, progress.failed) == (15, 0)
    assert (await store.calls(experiment_id)).calls == calls + 15 - answered
    assert await dead(broker) == []


@asynccontextmanager
async def up_local(environment):
    """`make up-local`, with its output; at free ports, since the usual ones may be taken."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        ROOT / "deploy/local/up.py",
        env={
            **os.environ,
            **environment,
            "SOCRATIC_PORT": "0",
            "SOCRATIC_HEALTH_PORT": "0",
            "JUDGES": "2",
            "RUNNERS": "2",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with waiting_for("make up-local"):
            yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def until_said(process, words) -> list[str]:
    said = []
    while line := (await process.stdout.readline()).decode():
        said.append(line.rstrip())
        if words in line:
            return said
    raise AssertionError(f"never said {words!r}:\n" + "\n".join(said))


async def test_up_local_starts_all_says_what_to_do_next_and_drains_them_at_ctrl_c(environment):
    async with up_local(environment) as process:
        said = await until_said(process, "All 6 services are ready.")
        await until_said(process, "socratic-bench submit")
        process.send_signal(signal.SIGINT)
        rest, _ = await process.communicate()
    assert process.returncode == 0
    assert sum(line.startswith("judge-") and " ready " in line for line in said) == 2
    assert rest.decode().count(" stopped") == 6


@pytest.mark.long
async def test_up_local_stops_the_others_when_one_cannot_start(environment, broker):
    async with up_local({**environment, "SOCRATIC_JUDGE_BATCH": "none"}) as process:
        said = await until_said(process, "ended by itself with exit code 2 and was never ready")
        assert await process.wait() == 1
    assert any("SOCRATIC_JUDGE_BATCH" in line for line in said)


async def test_up_local_starts_a_killed_runner_again_and_the_others_go_on(environment):
    async with up_local(environment) as process:
        said = await until_said(process, "socratic-bench submit")
        [pid] = (line.split()[-1] for line in said if line.startswith("  runner-2 "))
        os.kill(int(pid), signal.SIGKILL)
        said = await until_said(process, "runner-2 was ended by SIGKILL: restarting it in 1 s.")
        said += await until_said(process, " ready ")
        assert said[-1].startswith("runner-2 ")
        process.send_signal(signal.SIGINT)
        rest, _ = await process.communicate()
    assert process.returncode == 0
    assert "stopping the others" not in "\n".join(said)
    assert rest.decode().count(" stopped") == 6
