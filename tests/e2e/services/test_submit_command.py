"""`submit`, `status`, `watch` and `dlq` against RabbitMQ, PostgreSQL and running services."""

import asyncio
import json
import signal
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, JUDGE_RESPONSE_RECORDED, WORK_QUEUES
from socratic_bench.events.codec import Message
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready
from tests.servers import postgresql, rabbitmq
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.connected

CONFIG = """
models:
  - reference/socratic
  - {id: reference/lecturer, options: {latency_ms: 5}}
repeats: 3
"""
KINDS = ("runner", "judge", "curator")


@pytest.fixture
async def terminal(tmp_path):
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        addresses = {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": with_password(store)}
        yield Terminal(tmp_path, addresses)


def with_password(address: str) -> str:
    """An address with a password, also where the server asks for none."""
    parts = urlsplit(address)
    if parts.password:
        return address
    user = f"{parts.username}:geheim" if parts.username else "postgres:geheim"
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()


@pytest.fixture
def config(terminal):
    return terminal.write("b.yaml", CONFIG)


def submitted(terminal, config) -> str:
    done = terminal.run("submit", config)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_what_is_submitted_is_carried_out_by_the_services_and_watched_to_its_end(
    terminal, config
):
    experiment_id = submitted(terminal, config)
    assert submitted(terminal, config) == experiment_id, "submitted twice it is one experiment"
    waiting = json.loads(terminal.run("status", experiment_id, "--json").stdout)
    assert (waiting["state"], waiting["done"], waiting["left"]) == ("running", 0, 90)
    stop_watching_by_ctrl_c(terminal, experiment_id)

    async with all_ready(terminal.environment, *KINDS):
        watched = await typed(terminal, "watch", experiment_id[:8])
        async with opened(terminal.environment["SOCRATIC_STORE_URL"]) as store:
            await until(
                lambda: store.experiment(experiment_id), lambda it: it.completed_at, "completion"
            )

    assert watched.returncode == 0, watched.stderr
    first, second = watched.stdout.splitlines()[1:3]
    assert first.split()[1] == "reference/socratic"
    assert "45/45" in first.split()
    assert second.split()[1] == "reference/lecturer"
    assert "45/45" in second.split()
    done = the_only_status(terminal)
    assert (done["state"], done["done"], done["failed"]) == ("complete", 90, 0)
    assert terminal.run("verify").returncode == 0
    again = json.loads(terminal.run("submit", config, "--json").stdout)
    assert again == {
        "experiment_id": experiment_id,
        "manifest_id": done["manifest_id"],
        "planned": 90,
        "already_done": 90,
        "answered": 0,
        "requested": 0,
    }


def stop_watching_by_ctrl_c(terminal, experiment_id):
    with terminal.started("watch", experiment_id) as watching:
        said = watching.stderr.readline()
        watching.send_signal(signal.SIGINT)
        out, more = watching.communicate(timeout=PATIENCE)
    assert (watching.returncode, out) == (130, "")
    assert said + more == (
        f"Watching {experiment_id} (Ctrl-C: it goes on unwatched)\n"
        "Stopped watching: the experiment goes on.\n"
    )


def the_only_status(terminal):
    [status] = json.loads(terminal.run("status", "--json").stdout)["experiments"]
    return status


async def test_past_its_deadline_what_is_pending_is_listed_by_name_and_where_it_is_stuck(
    terminal, config
):
    experiment_id = submitted(terminal, config)
    async with all_ready(terminal.environment, "runner"):
        await every_response(terminal, experiment_id)
    assert each_waits_for(terminal, experiment_id) == ["score"] * 90
    hurried = terminal.write("b.yaml", f"{CONFIG}deadline_hours: 0.0001\n")
    assert submitted(terminal, hurried) == experiment_id

    watched = terminal.run("watch", experiment_id, "--json")
    assert watched.returncode == 1
    overdue = json.loads(watched.stdout)
    assert (overdue["state"], overdue["left"]) == ("overdue", 90)
    assert len({run["run_id"] for run in overdue["pending"]}) == 90
    status = terminal.run("status", experiment_id)
    assert status.returncode == 1
    assert "… and 70 more: --pending" in status.stdout
    assert "90 runs are pending: 90 without a score." in status.stderr


async def every_response(terminal, experiment_id):
    """Wait until the runner has stored a response for each run."""
    async with opened(terminal.environment["SOCRATIC_STORE_URL"]) as store:
        runs = [run.run_id for run in (await store.experiment(experiment_id)).runs()]
        await until(
            lambda: store.responses(runs), lambda it: len(it) == len(runs), "every response"
        )


@asynccontextmanager
async def opened(url):
    store = open_store(url)
    try:
        yield store
    finally:
        await store.close()


def each_waits_for(terminal, experiment_id) -> list[str]:
    """The missing part (response or score) of each pending run."""
    done = terminal.run("status", experiment_id, "--json", "--pending")
    return [run["waits_for"] for run in json.loads(done.stdout)["pending"]]


async def test_what_no_service_can_handle_is_listed_put_back_and_thrown_away(terminal):
    queue = JUDGE_RESPONSE_RECORDED
    broker = open_broker(terminal.environ()["SOCRATIC_BROKER_URL"])
    try:
        await broker.declare(WORK_QUEUES, BROADCASTS)
        await broker.publish([Message("poison-1", queue.event_type, "a/b", b'{"not": "an event"}')])
        async with all_ready(terminal.environment, "judge"):
            letter = await dead_letter(terminal, broker, queue.name)
            assert (letter["id"], letter["group"], letter["body"]) == (
                "poison-1",
                "a/b",
                '{"not": "an event"}',
            )
            assert "not an event this version reads" in letter["reason"]
            redriven = await typed(terminal, "dlq", "redrive", queue.name)
            assert redriven.stderr == f"{queue.name}: 1 dead letter put back.\n"
            letter = await dead_letter(terminal, broker, queue.name)
            assert letter["id"] == "poison-1"
    finally:
        await broker.close()

    listed = terminal.run("dlq", "list")
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [
        [queue.name, "poison-1"]
    ]
    assert terminal.run("dlq", "purge", queue.name).returncode == 2
    purged = terminal.run("dlq", "purge", queue.name, "--yes")
    assert purged.stderr == f"{queue.name}: 1 dead letter deleted.\n"
    assert terminal.run("dlq", "list").stdout == ""


async def dead_letter(terminal, broker, queue):
    """The one dead letter of a queue, once it is there."""
    await until(lambda: broker.dead_letters(queue), bool, f"a dead letter of {queue}")
    return json.loads((await typed(terminal, "dlq", "list", queue, "--json")).stdout)


async def typed(terminal, *words):
    """Run a command while services run, and read their logs meanwhile."""
    return await asyncio.to_thread(terminal.run, *words)


@pytest.mark.long
async def test_services_that_never_saw_a_complete_experiment_run_retry_its_failed_runs(terminal):
    config = terminal.write("b.yaml", "models: [reference/faulty]\nrepeats: 1\n")
    experiment_id = submitted(terminal, config)
    async with opened(terminal.environment["SOCRATIC_STORE_URL"]) as store:
        async with all_ready(terminal.environment, *KINDS):
            await until(
                lambda: store.experiment(experiment_id), lambda it: it.completed_at, "completion"
            )
        calls = (await store.calls(experiment_id)).calls
        assert (await store.progress(experiment_id)).failed
        async with all_ready(terminal.environment, *KINDS):
            done = await typed(terminal, "submit", config, "--retry-failed")
            assert done.returncode == 0, done.stderr
            await until(
                lambda: store.calls(experiment_id), lambda it: it.calls > calls, "another call"
            )


def test_no_command_shows_a_password(terminal):
    config = terminal.write("b.yaml", "models: [reference/socratic]\nrepeats: 1\n")
    addresses = [
        urlsplit(terminal.environment[f"SOCRATIC_{what}_URL"]) for what in ("STORE", "BROKER")
    ]
    done = [
        terminal.run(*words)
        for words in (
            ("run", config),
            ("submit", config),
            ("status",),
            ("dlq", "list"),
            ("verify",),
            ("run", "--help"),
            ("submit", "--help"),
        )
    ]
    assert [each.returncode for each in done] == [0] * 7
    for address in addresses:
        assert f":{address.password}" not in "".join(each.stdout + each.stderr for each in done)


@pytest.mark.long
def test_a_broker_that_is_not_there_is_one_sentence_without_the_password(tmp_path):
    terminal = Terminal(tmp_path)
    config = terminal.write("b.yaml", CONFIG)
    done = terminal.run("submit", config, "--broker", "amqp://guest:geheim@127.0.0.1:1/")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Error: amqp://127.0.0.1:1/" in done.stderr
    assert "geheim" not in done.stderr
    assert "Traceback" not in done.stderr
