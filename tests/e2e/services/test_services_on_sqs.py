"""Services as processes on SQS: announcements over SNS, kills, and `make up-local BROKER=sqs`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.e2e.service_processes import all_ready, start
from tests.servers import aws_emulator, postgresql, sqs
from tests.servers.discovery import missing
from tests.servers.http_process import free_port
from tests.waiting import until, waiting_for

pytestmark = [pytest.mark.connected, pytest.mark.long]

ROOT = Path(__file__).parents[3]
KINDS = ("runner", "judge", "curator", "api")
TUTORS = ("socratic", "lecturer", "hedger")
REPEATS = 3


@pytest.fixture
async def addresses() -> AsyncIterator[dict[str, str]]:
    async with sqs.namespace() as broker, postgresql.prepared_database() as store:
        yield {
            "SOCRATIC_BROKER_URL": broker,
            "SOCRATIC_STORE_URL": store,
            **aws_emulator.credentials(),
        }


@pytest.fixture
def services_terminal(tmp_path: Path, addresses: dict[str, str]) -> Terminal:
    return Terminal(tmp_path, addresses)


def models(**options: object) -> str:
    listed = [{"id": f"reference/{tutor}", "options": options} for tutor in TUTORS]
    return json.dumps({"models": listed, "repeats": REPEATS})


async def more_calls(store: Store, experiment_id: str, than: int) -> CallCount:
    return await until(
        partial(store.calls, experiment_id),
        lambda count: count.calls > than,
        f"more calls than {than}",
    )


async def test_a_benchmark_is_carried_out_and_announced(
    services_terminal: Terminal,
    addresses: dict[str, str],
    store: Store,
) -> None:
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    await broker.declare(WORK_QUEUES, BROADCASTS)
    try:
        async with all_ready(addresses, *KINDS) as services, broker.listen(*BROADCASTS) as news:
            experiment_id = await submitted(services_terminal, models())
            await completed(store, experiment_id)
            async for message in news:
                if message.type == BROADCASTS[-1]:
                    assert message.group == experiment_id
                    break
            for service in services.values():
                service.terminate()
            codes = {kind: await service.ended() for kind, service in services.items()}
    finally:
        await broker.close()
    assert codes == dict.fromkeys(KINDS, 0)
    calls = (await store.calls(experiment_id)).calls
    assert calls == len(TUTORS) * 15 * REPEATS
    assert await dead_letters(addresses) == []


async def test_killed_services_delay_a_benchmark_and_change_nothing(
    services_terminal: Terminal, addresses: dict[str, str], store: Store
) -> None:
    async with all_ready(addresses, "judge", "curator", "runner") as services:
        experiment_id = await submitted(services_terminal, models(latency_ms=400))
        called = 0
        for kind in ("judge", "curator", "runner"):
            # Not by the runs that are done: they end with the first of the three.
            called = (await more_calls(store, experiment_id, called)).calls
            services[kind].kill()
            assert await services[kind].ended() == -signal.SIGKILL
        again = [await start(kind, addresses) for kind in ("runner", "judge", "curator")]
        try:
            await completed(store, experiment_id)
        finally:
            await asyncio.gather(*(service.close() for service in again))
    assert await dead_letters(addresses) == []


@asynccontextmanager
async def up_local(folder: Path, port: int) -> AsyncIterator[dict[str, str]]:
    """`make up-local BROKER=sqs` with two judges; the settings that it prints for commands."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "BROKER": "sqs",
        "EMULATOR_PYTHON": str(ROOT / ".venv-servers" / "bin" / "python"),
        "EMULATOR_PORT": str(port),
        "EMULATOR_FOLDER": str(folder / "emulator"),
        "SOCRATIC_PORT": "0",
        "SOCRATIC_HEALTH_PORT": "0",
        "JUDGES": "2",
    }
    script = ROOT / "deploy" / "local" / "up.py"
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, env=environment, stdout=asyncio.subprocess.PIPE
    )
    said = ""
    try:
        async with waiting_for("make up-local BROKER=sqs"):
            assert process.stdout is not None
            while "Ctrl-C here" not in said:
                line = (await process.stdout.readline()).decode()
                assert line, f"it ended: {said}"
                said += line
        assert "All 5 services are ready." in said
        yield dict(re.findall(r"'(\w+)=(.*?)'", said.partition("In another terminal:")[2]))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        rest, _ = await process.communicate()
    assert process.returncode == 0, rest.decode()


async def test_up_local_needs_no_server_and_keeps_what_the_emulator_has(tmp_path: Path) -> None:
    if not (ROOT / ".venv-servers" / "bin" / "ministack").exists():
        missing("no emulator is installed (see tests/servers/requirements.txt)")
    port = free_port()
    async with up_local(tmp_path, port) as told:
        terminal = Terminal(tmp_path, told)
        with mock.patch.dict(os.environ, told):
            store = open_store(told["SOCRATIC_STORE_URL"])
            try:
                experiment_id = await submitted(terminal, models())
                experiment = await completed(store, experiment_id)
                cells = await cells_of(store, experiment_id)
            finally:
                await store.close()
        shown = await asyncio.to_thread(terminal.run, "leaderboard", "--format", "json")
    assert cells == await cells_of_a_quiet_run(experiment, tmp_path)
    async with up_local(tmp_path, port):
        again = await asyncio.to_thread(terminal.run, "leaderboard", "--format", "json")
    assert again.stdout == shown.stdout != ""
