"""`make up` starts the services in containers, with real servers."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request

import pytest

import socratic_bench
from socratic_bench.addresses import open_store
from tests.containers.stack import assert_all_was_counted_once, stack_of, submitted
from tests.e2e.command import Terminal
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.waiting import PATIENCE

SERVICES = {"runner", "judge", "curator", "api"}
ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter", "faulty")
CONFIG = """
models:
  - reference/socratic
  - reference/lecturer
repeats: 2
"""
SLOW_CONFIG = """
models:
  - id: reference/hedger
    options: {latency_ms: 400}
    limits: {concurrency: 2, timeout_seconds: 1}
repeats: 4
"""

pytestmark = [
    pytest.mark.connected,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("containers"),
]


@pytest.fixture(scope="module")
def stack(container_engine):
    with stack_of(container_engine, "compose.yaml") as stack:
        assert "socratic-bench submit" in stack.up("JUDGES=2")
        yield stack


@pytest.fixture
def terminal(stack, tmp_path):
    return Terminal(tmp_path, stack.addresses())


def complete(terminal: Terminal, experiment_id: str) -> bool:
    done = terminal.run("status", experiment_id, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["state"] == "complete"


def test_a_submitted_benchmark_is_carried_out_and_shown(stack, terminal):
    experiment_id = submitted(terminal, CONFIG)
    assert_all_was_counted_once(terminal, experiment_id, runs=60)
    address = stack.compose("port", "api", "8000").strip()
    url = f"http://{address}/api/model-comparison?experiment={experiment_id}"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        models = json.load(answer)["models"]
    assert [(m["model_id"], m["total_runs"]) for m in models] == [
        ("reference/socratic", 30),
        ("reference/lecturer", 30),
    ]
    with urllib.request.urlopen(f"http://{address}/research.html", timeout=PATIENCE) as answer:
        assert "Does it ask, or does it lecture?" in answer.read().decode()


def test_25_models_in_containers_have_the_cells_of_an_embedded_run(stack, terminal, tmp_path):
    labels = [f"reference/{archetype}@{n}" for archetype in ARCHETYPES for n in range(1, 6)]
    config = json.dumps({"models": labels, "repeats": 3})
    experiment_id = submitted(terminal, config)
    watched = terminal.run("watch", experiment_id, "--json")
    # reference/faulty fails some of its runs: they are done all the same.
    assert json.loads(watched.stdout)["done"] == 25 * 45, watched.stderr

    async def cells():
        store = open_store(stack.addresses()["SOCRATIC_STORE_URL"])
        try:
            experiment = await store.experiment(experiment_id)
            assert experiment is not None
            return experiment, await cells_of(store, experiment_id)
        finally:
            await store.close()

    experiment, in_containers = asyncio.run(cells())
    assert in_containers
    assert in_containers == asyncio.run(cells_of_a_quiet_run(experiment, tmp_path))


@pytest.mark.parametrize(
    ("service", "absent"),
    [
        ("judge", ("asyncpg", "sqlalchemy", "aiobotocore", "aiohttp")),
        ("curator", ("aiobotocore", "aiohttp")),
        ("api", ("aiobotocore", "aiohttp")),
        ("runner", ("rich", "yaml")),
    ],
)
def test_an_image_holds_its_own_extras_and_no_others(stack, service, absent):
    names = [*absent, *(f"socratic_{other}" for other in sorted(SERVICES - {service}))]
    script = f"from importlib.util import find_spec; print([n for n in {names} if find_spec(n)])"
    assert stack.compose("exec", "-T", service, "python", "-c", script).strip() == "[]"


def test_an_image_for_aws_holds_its_client_and_no_server_of_compose(stack):
    arguments = ("SERVICE=judge", "PORT=9102", "EXTRAS=aws,container")
    given = [word for each in arguments for word in ("--build-arg", each)]
    name = f"{stack.environment['COMPOSE_PROJECT_NAME']}-aws"
    words = ("--network", "none", "--file", "services/Dockerfile", "--target", "service")
    built = stack.run("docker", "build", *given, *words, "--tag", name, ".", deadline=900)
    assert built.returncode == 0, built.stdout + built.stderr
    names = ["aiobotocore", "prometheus_client", "aio_pika", "asyncpg", "sqlalchemy"]
    script = f"from importlib.util import find_spec; print([n for n in {names} if find_spec(n)])"
    run = ("run", "--rm", "--network", "none", "--read-only", "--entrypoint", "python")
    shown = stack.run("docker", *run, name, "-c", script)
    assert shown.stdout.strip() == "['aiobotocore', 'prometheus_client']", shown.stderr
    # Without a place to write: a task on Fargate has none.
    broker = ("--env", "SOCRATIC_BROKER_URL=sqs://eu-central-1/test?endpoint=http://127.0.0.1:9")
    keys = ("--env", "AWS_ACCESS_KEY_ID=none", "--env", "AWS_SECRET_ACCESS_KEY=none")
    deadline = ("--env", "SOCRATIC_START_DEADLINE=1")
    started = stack.run("docker", *run[:-2], *broker, *keys, *deadline, name)
    assert "the broker did not answer within 1 s" in started.stdout + started.stderr


def test_an_image_is_tagged_with_the_version_and_labelled_with_the_commit(stack):
    [image] = {row["Image"] for row in stack.containers("api")}
    assert image == f"socratic-bench/api:{socratic_bench.__version__}"
    shown = stack.run("docker", "inspect", "--format", "{{json .Config.Labels}}", image)
    labels = json.loads(shown.stdout)
    assert labels["org.opencontainers.image.version"] == socratic_bench.__version__
    assert labels["org.opencontainers.image.revision"] not in {"", "unknown"}


def test_a_killed_runner_and_a_killed_judge_lose_nothing(stack, terminal):
    experiment_id = submitted(terminal, SLOW_CONFIG)
    runner = stack.containers("runner")[0]["Name"]
    judge = stack.containers("judge")[0]["Name"]
    assert stack.run("docker", "kill", runner, judge).returncode == 0
    assert not complete(terminal, experiment_id)
    assert stack.run("docker", "start", runner).returncode == 0  # the other judge goes on alone
    assert_all_was_counted_once(terminal, experiment_id, runs=60)


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_service_has_no_rights_and_writes_nothing_but_its_tmp(stack, service):
    script = "id -u; touch /tmp/a && rm /tmp/a && echo tmp; touch /b /opt/b /replays/b 2>/dev/null"
    done = stack.run(*stack.command, "exec", "-T", service, "sh", "-c", script)
    assert done.stdout.split() == ["10001", "tmp"]
    assert done.returncode != 0


def test_told_to_stop_every_service_ends_well_and_the_data_is_kept(stack, terminal):
    stack.up("JUDGES=2")
    before_it_stops = Terminal(terminal.folder, stack.addresses())
    assert_all_was_counted_once(before_it_stops, submitted(before_it_stops, CONFIG), runs=60)
    leaderboard = ("leaderboard", "--format", "json", "--experiment", "all")
    before = Terminal(terminal.folder, stack.addresses()).run(*leaderboard).stdout
    assert json.loads(before)["models"]
    started = time.monotonic()
    stack.compose("stop", *sorted(SERVICES))
    assert time.monotonic() - started < 30
    ended = {c["Name"]: c["ExitCode"] for c in stack.containers() if c["Service"] in SERVICES}
    assert len(ended) == 5
    assert set(ended.values()) == {0}, ended
    down = stack.run("make", "down")
    assert down.returncode == 0, down.stderr
    assert stack.containers() == []
    stack.up()
    assert Terminal(terminal.folder, stack.addresses()).run(*leaderboard).stdout == before
