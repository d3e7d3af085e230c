"""A dead endpoint: every command reports it at once, with the reason."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import asynccontextmanager

import pytest

from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.raw_server import completion, response, serving
from tests.waiting import until, waiting_for

MODEL = "openai-compatible/down"
KEY = "sk-never-to-be-seen-93ab1f"
REFUSED = "cannot be reached: connection refused"
PATIENT = {
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.2",
    "SOCRATIC_RUNNER_LONGEST_DELAY": "1",
    "SOCRATIC_RUNNER_PATIENT_ATTEMPTS": "500",
}


@pytest.fixture
def dead_port():
    """A port of the loopback address that stays without a listener."""
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holding.bind(("127.0.0.1", 0))
        yield holding.getsockname()[1]


def config(*ports, scenarios=2, **more) -> str:
    models = [
        {
            "id": MODEL if number == 0 else f"openai-compatible/other-{number}",
            "base_url": f"http://127.0.0.1:{port}/v1",
            "options": {"stream": False},
        }
        for number, port in enumerate(ports)
    ]
    asked = [
        {"id": f"s{number}", "dimension": "student", "prompt": "Is 91 a prime number?"}
        for number in range(scenarios)
    ]
    return json.dumps({"models": models, "scenarios": asked, "repeats": 1, **more})


@asynccontextmanager
async def typed(terminal, *words):
    """Start a command that runs while the test goes on."""
    with terminal.started(*words) as running:
        yield running


async def line_with(running, words) -> str:
    """The first line on standard error with these words, waited for."""
    async with waiting_for(f"{words!r} on standard error"):
        while line := await asyncio.to_thread(running.stderr.readline):
            if words in line:
                return line.rstrip()
    raise AssertionError(f"it ended before it said {words!r}")


async def test_run_says_at_the_first_failed_attempt_what_is_wrong(tmp_path, dead_port):
    terminal = Terminal(tmp_path, PATIENT)
    path = terminal.write("b.yaml", config(dead_port))
    async with typed(terminal, "run", path) as running:
        told = await line_with(running, REFUSED)
        assert told == (
            f"{MODEL} at http://127.0.0.1:{dead_port} {REFUSED} (attempt 1 of 500, next in 1 s)"
        )
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, rest = await asyncio.to_thread(running.communicate)
    assert running.returncode == 1
    assert "2 runs are left: the same command continues from here." in rest
    assert REFUSED not in rest, "it was told before"


@asynccontextmanager
async def answering(port=None, text="What have you tried?"):
    """An endpoint that replies, at a port if one is given."""

    async def answer(_request, writer):
        usage = {"prompt_tokens": 20, "completion_tokens": 5}
        body = completion(text, usage=usage, model="served-2026")
        writer.write(response("200 OK", body, "Content-Type: application/json"))

    if port is None:
        async with serving(answer) as server:
            yield int(server.address.rpartition(":")[2])
        return
    async with serving(answer, port):
        yield port


async def test_a_failure_that_ends_all_at_once_is_told_too_and_in_one_sentence(tmp_path):
    async def refuse(_request, writer):
        body = json.dumps({"error": {"message": "No such [bold]key", "code": "bad_key"}}).encode()
        writer.write(response("401 Unauthorized", body, "Content-Type: application/json"))

    terminal = Terminal(tmp_path)
    async with serving(refuse) as server:
        path = terminal.write("b.yaml", config(server.address.rpartition(":")[2]))
        done = await asyncio.to_thread(terminal.run, "run", path)
    at = f"{MODEL} at {server.address} answered HTTP 401 (bad_key): No such [bold]key"
    remedy = "it wants a key: name its variable in options: {api_key_env: …}"
    assert f"{at}; {remedy} (given up after 1 attempt)" in done.stderr.splitlines()
    assert "Warning: " not in done.stderr


async def test_check_asks_each_model_once_and_stores_nothing(tmp_path, dead_port):
    terminal = Terminal(tmp_path)
    async with answering() as port, answering(text="") as silent:
        path = terminal.write("b.yaml", config(dead_port, port, silent))
        done = await asyncio.to_thread(terminal.run, "run", path, "--check")
        as_json = await asyncio.to_thread(terminal.run, "run", path, "--check", "--json")
        alone = terminal.write("alone.yaml", config(port))
        well = await asyncio.to_thread(terminal.run, "run", alone, "--check", "--json")
    assert done.returncode == as_json.returncode == 1
    _, down, other, empty, *rest = done.stdout.splitlines()
    assert down.split()[:2] == [MODEL, "unreachable"]
    assert other.split()[1] == "ok"
    assert other.split()[4:] == ["20", "5", "–", "served-2026"]
    assert empty.split()[1] == "empty"
    assert f"{MODEL} at http://127.0.0.1:{dead_port} {REFUSED}" in rest
    assert any(
        "other-2: the answer is empty, and has no score: 5 output tokens" in each for each in rest
    )
    assert rest[-1].startswith("The check cost $0.00, and an unknown amount for openai-compatible/")
    [first, second, third] = json.loads(as_json.stdout)["models"]
    assert (first["ok"], first["result"], first["output_tokens"]) == (False, "unreachable", None)
    assert (second["ok"], second["model_version"], second["input_tokens"]) == (
        True,
        "served-2026",
        20,
    )
    assert (third["ok"], third["result"]) == (False, "empty")
    assert (well.returncode, json.loads(well.stdout)["models"][0]["model_id"]) == (0, MODEL)
    assert not terminal.database.exists()


async def test_check_keeps_the_rules_of_a_run(tmp_path, dead_port):
    terminal = Terminal(tmp_path)
    keyless = config(dead_port).replace('"stream": false', '"api_key_env": "NO_SUCH_KEY"')
    for words in ((), ("--check",)):
        done = await asyncio.to_thread(
            terminal.run, "run", terminal.write("b.yaml", keyless), *words
        )
        assert (done.returncode, "NO_SUCH_KEY" in done.stderr) == (2, True)
    price = {"input_per_million": 1000, "output_per_million": 1000}
    dear = json.loads(config(dead_port, budget=0.01))
    dear["models"][0]["price"] = price
    path = terminal.write("dear.yaml", json.dumps(dear))
    done = await asyncio.to_thread(terminal.run, "run", path, "--check")
    assert done.returncode == 2
    assert "more than the budget of $0.0100" in done.stderr


def test_a_store_that_the_environment_names_is_named_without_its_password(tmp_path):
    terminal = Terminal(tmp_path)
    path = terminal.write("b.yaml", "models: [reference/socratic]\nrepeats: 1\n")
    done = terminal.run("run", path)
    said = f"Results go to {terminal.store}, which SOCRATIC_STORE_URL names."
    assert done.stderr.splitlines()[0] == said
    assert "SOCRATIC_STORE_URL" not in terminal.run("run", path, "--store", terminal.store).stderr
    elsewhere = {"SOCRATIC_STORE_URL": "postgresql://me:hunter2@127.0.0.1:9/results"}
    away = Terminal(tmp_path, elsewhere).run("run", path)
    assert "Results go to postgresql://127.0.0.1:9/results, which" in away.stderr
    assert "hunter2" not in away.stdout + away.stderr


@pytest.fixture
async def addresses():
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        yield {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": store}


@pytest.mark.connected
async def test_over_services_log_metrics_status_and_watch_tell_until_a_reply_comes(
    tmp_path, addresses, store, dead_port, monkeypatch
):
    monkeypatch.setenv("PLANTED_KEY", KEY)
    terminal = Terminal(tmp_path, addresses)
    keyed = config(dead_port).replace('"stream": false', '"api_key_env": "PLANTED_KEY"')
    path = terminal.write("b.yaml", keyed)
    trouble = {"model": MODEL, "outcome": "unreachable"}
    sentence = f"{MODEL} at http://127.0.0.1:{dead_port} {REFUSED} (attempt "
    listed = {"origin": f"http://127.0.0.1:{dead_port}", "key_variable": "PLANTED_KEY"}
    environment = {**addresses, **PATIENT, "SOCRATIC_ENDPOINTS": json.dumps({"down": listed})}
    async with all_ready(environment, "runner", "judge", "curator") as services:
        runner = services["runner"]
        done = await asyncio.to_thread(terminal.run, "submit", path)
        experiment_id = done.stdout.strip()
        warned = await runner.logged("model in trouble")
        assert (warned["level"], warned["model"], warned["attempt"]) == ("warning", MODEL, 1)
        assert warned["reason"].endswith(REFUSED)
        await until(lambda: store.troubles(experiment_id), bool, "the trouble in the store")
        shown = await asyncio.to_thread(terminal.run, "status", experiment_id)
        lines = shown.stdout.splitlines()
        assert lines[lines.index("in trouble") + 1].startswith(sentence)
        assert "of 500, next in " in lines[lines.index("in trouble") + 1]
        assert await runner.metric("socratic_model_troubles", **trouble) == 1
        async with typed(terminal, "watch", experiment_id) as watching:
            assert (await line_with(watching, REFUSED)).startswith(sentence)
            async with answering(dead_port):
                _, rest = await asyncio.to_thread(watching.communicate)
        assert watching.returncode == 0, rest
        assert await runner.metric("socratic_model_troubles", **trouble) == 0
        await until(lambda: store.troubles(experiment_id), lambda it: not it, "its end")
        after = await asyncio.to_thread(terminal.run, "status", experiment_id)
    assert "in trouble" not in after.stdout
    assert sum(line["event"] == "model in trouble" for line in runner.logs) == 1
    assert KEY not in runner.text + shown.stdout + shown.stderr
