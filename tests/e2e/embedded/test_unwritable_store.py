"""The view of a person at a terminal of an unwritable store: a full disk, a read-only one."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import pytest

from tests.e2e.command import Terminal
from tests.servers import postgresql
from tests.servers.providers.endpoint import endpoint
from tests.small_disk import small_disk
from tests.waiting import PATIENCE, waiting_for

RUNS = 15


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path, megabytes=5) as disk:
        yield disk


@pytest.fixture
def terminal(disk):
    """A terminal whose store is a file on a small disk."""
    return Terminal(disk.folder)


@asynccontextmanager
async def under_way(terminal, *words):
    """A running command, with its lines on standard error."""
    with terminal.started(*words) as running:
        yield running, lambda: asyncio.to_thread(running.stderr.readline)


async def output(running):
    return await asyncio.to_thread(running.communicate, timeout=PATIENCE)


async def said(next_line, words) -> str:
    """The line with these words, waited for."""
    async with waiting_for(f"{words!r} on standard error"):
        while line := await next_line():
            if words in line:
                return line
    raise AssertionError(f"never said {words!r}")


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("Error:")]


@asynccontextmanager
async def waiting_with_replies(terminal, stop, *words):
    """A benchmark that waits for its store, which `stop` made it do, with paid replies in hand."""
    async with endpoint() as model:
        config = terminal.write("b.yaml", model.config(repeats=1))
        model.hold()
        async with under_way(terminal, "run", config, *words) as (running, next_line):
            await model.until_asked(1)
            await stop()
            await model.release()
            waiting = await said(next_line, "Waiting: ")
            yield model, running, next_line, waiting


async def test_a_disk_that_fills_up_under_a_run_is_told_of_once_and_no_reply_is_paid_for_again(
    disk, terminal
):
    async def fill():
        disk.fill()

    async with waiting_with_replies(terminal, fill, "--json") as (model, running, _, waiting):
        assert str(terminal.database) in waiting
        assert "free some space" in waiting
        disk.make_room()
        result, rest = await output(running)
    assert running.returncode == 0, rest
    assert rest.count("Going on: ") == 1
    assert "Waiting: " not in rest
    assert json.loads(result)["done"] == RUNS
    assert len(model.asked) == RUNS
    assert set(model.calls_of_a_turn.values()) == {1}
    assert terminal.run("verify").returncode == 0


async def test_ctrl_c_ends_a_run_that_waits_for_room_the_second_time_at_once(disk, terminal):
    async def fill():
        disk.fill()

    async with waiting_with_replies(terminal, fill) as (model, running, next_line, _):
        running.send_signal(signal.SIGINT)
        assert "Ctrl-C: at once, and they are lost" in await said(next_line, "Stopping")
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, rest = await output(running)
        assert rest.splitlines()[-1] == "Stopped."
        assert running.returncode == 130
        disk.make_room()
        again = await asyncio.to_thread(terminal.run, "run", disk.folder / "b.yaml")
    assert again.returncode == 0, again.stderr
    assert max(model.calls_of_a_turn.values()) <= 2


async def test_on_a_full_disk_a_benchmark_ends_before_its_first_call_with_one_sentence(
    disk, terminal
):
    async with endpoint() as model:
        config = terminal.write("b.yaml", model.config(repeats=1))
        model.hold()
        with terminal.started("run", config) as running:
            await model.until_asked(1)
            running.kill()
            await output(running)
        disk.fill()
        asked = len(model.asked)
        refused = await asyncio.to_thread(terminal.run, "run", config)
    assert refused.returncode == 1
    [sentence] = errors(refused.stderr)
    assert sentence.startswith(f"Error: {terminal.database}: ")
    assert "Everything stored before is safe" in sentence
    assert len(model.asked) == asked


def test_on_a_read_only_disk_a_run_ends_with_one_sentence_and_the_results_are_read(disk, terminal):
    config = terminal.write("b.yaml", "models: [reference/socratic]\nrepeats: 1\n")
    assert terminal.run("run", config).returncode == 0
    disk.make_read_only()
    refused = terminal.run("run", config)
    [sentence] = errors(refused.stderr)
    assert refused.returncode == 1
    assert sentence.startswith(f"Error: {terminal.database} cannot be used: Read-only file system")
    assert sentence.endswith("name another store with --store")
    shown = terminal.run("leaderboard")
    assert shown.returncode == 0, shown.stderr
    assert "reference/socratic" in shown.stdout


@pytest.mark.connected
@pytest.mark.parametrize("command", ["run", "submit"])
async def test_on_a_read_only_database_a_benchmark_ends_before_its_first_call_with_one_sentence(
    services_terminal, addresses, command
):
    config = services_terminal.write("b.yaml", "models: [reference/socratic]\nrepeats: 1\n")
    address = addresses["SOCRATIC_STORE_URL"]
    await postgresql.read_only(address, is_read_only=True)
    try:
        refused = await asyncio.to_thread(services_terminal.run, command, config)
    finally:
        await postgresql.read_only(address, is_read_only=False)
    assert refused.returncode == 1
    [sentence] = errors(refused.stderr)
    assert "it is read-only; unless a fail-over is under way, give the address" in sentence


@pytest.mark.connected
async def test_a_database_that_is_read_only_under_a_run_is_waited_for_with_the_replies_in_hand(
    services_terminal, addresses
):
    async def read_only(*, is_read_only=True):
        await postgresql.read_only(addresses["SOCRATIC_STORE_URL"], is_read_only=is_read_only)

    async with waiting_with_replies(services_terminal, read_only) as (model, running, *_):
        await read_only(is_read_only=False)
        _, rest = await output(running)
    assert running.returncode == 0, rest
    assert set(model.calls_of_a_turn.values()) == {1}
    assert len(model.asked) == RUNS
