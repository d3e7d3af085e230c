"""A key is planted, used, refused and misplaced; afterwards it is looked for everywhere."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from socratic_bench.addresses import open_store
from tests.contract.store.facts import failures_in
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready
from tests.servers import postgresql, rabbitmq
from tests.servers.providers import aimock
from tests.servers.providers.listed import listed
from tests.waiting import until

pytestmark = pytest.mark.connected

REFUSED = "sk-planted-0f3a9c77d1"
KEYS = {"A_KEY": aimock.KEY, "ANOTHER_KEY": REFUSED}
CONFIG = """
models:
  - {{id: openai-compatible/well, base_url: "{address}/v1", options: {{api_key_env: A_KEY}}}}
  - {{id: openai-compatible/broke, base_url: "{address}/v1", options: {{api_key_env: A_KEY}}}}
  - id: openai-compatible/locked
    base_url: "{address}/v1"
    options: {{api_key_env: ANOTHER_KEY}}
  - {{id: anthropic/well, base_url: "{address}", options: {{api_key_env: ANOTHER_KEY}}}}
scenarios: [student-bigger-fraction]
repeats: 2
"""
NAMED = CONFIG.replace("options: {{api_key_env: A_KEY}}", "endpoint: A_KEY-0").replace(
    "options: {{api_key_env: ANOTHER_KEY}}", "endpoint: ANOTHER_KEY-0"
)
"""The same for services, whose operator has listed the keys."""


def planted_in(text: str | bytes) -> list[str]:
    """The keys that are in a text."""
    data = text.encode() if isinstance(text, str) else text
    return [key for key in KEYS.values() if key.encode() in data]


def test_no_key_is_in_what_a_benchmark_prints_or_stores(tmp_path):
    address = aimock.SERVER.address()
    terminal = Terminal(tmp_path, {**KEYS, **listed(address, keys=KEYS)})
    config = terminal.write("b.yaml", CONFIG.format(address=address))
    for words in (("run", config), ("run", config, "--json"), ("leaderboard",), ("status",)):
        done = terminal.run(*words)
        assert planted_in(done.stdout + done.stderr) == []
    assert "auth 2" in terminal.run("run", config).stderr
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or planted_in(file.read_bytes()) == [], file


@pytest.mark.parametrize(
    "misplaced",
    [
        'options: {api_key_env: "KEY"}',
        'options: {api_key: "KEY"}',
        'api_key: "KEY"',
        'base_url: "http://user:KEY@127.0.0.1/v1"',
        'base_url: "http://127.0.0.1/v1?key=KEY"',
        'options: {extra_body: {model: "KEY"}}',
    ],
)
def test_a_key_in_a_configuration_is_refused_and_not_repeated(tmp_path, misplaced):
    terminal = Terminal(tmp_path)
    base_url = "" if "base_url" in misplaced else "base_url: http://127.0.0.1/v1, "
    entry = f"{{id: openai-compatible/x, {base_url}{misplaced.replace('KEY', REFUSED)}}}"
    done = terminal.run("run", terminal.write("b.yaml", f"models:\n  - {entry}\n"))
    assert done.returncode == 2, done.stdout
    assert planted_in(done.stdout + done.stderr) == []
    assert not terminal.database.exists()


async def test_no_key_is_in_the_logs_or_the_database_of_services(tmp_path):
    address = await asyncio.to_thread(aimock.SERVER.address)
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as database:
        addresses = {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": database}
        endpoints = listed(address, keys=KEYS)
        environment = {**addresses, **KEYS, **endpoints, "SOCRATIC_LOG_LEVEL": "debug"}
        terminal = Terminal(tmp_path, addresses)
        config = terminal.write("b.yaml", NAMED.format(address=address))
        async with all_ready(environment, "runner", "judge", "curator") as services:
            submitted = await asyncio.to_thread(terminal.run, "submit", config)
            assert submitted.returncode == 0, submitted.stderr
            store = open_store(database)
            try:
                experiment_id = submitted.stdout.strip()
                await until(
                    lambda: store.progress(experiment_id),
                    lambda it: it.done == it.planned,
                    "all runs",
                )
                failed = await failures_in(store, experiment_id)
            finally:
                await store.close()
            for service in services.values():
                service.terminate()
            for service in services.values():
                await service.ended()
        assert {failure.kind for failure in failed} == {"auth"}
        for service in services.values():
            assert planted_in(service.text) == []
        connection = await asyncpg.connect(database)
        try:
            tables = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            )
            for (table,) in tables:
                for (row,) in await connection.fetch(f'SELECT t::text FROM "{table}" t'):
                    assert planted_in(row) == []
        finally:
            await connection.close()
        assert len(tables) > 5
