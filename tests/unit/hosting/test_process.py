"""A process: exit codes, signals, and a log that is JSON and keeps secrets."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.waiting import waiting_for

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def small_service(**settings):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.unit.hosting.small_service",
        env={
            **os.environ,
            **{f"SOCRATIC_{name.upper()}": value for name, value in settings.items()},
        },
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with waiting_for("the process"):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until(process, event):
    while line := await process.stderr.readline():
        if json.loads(line)["event"] == event:
            return
    raise AssertionError(f"it ended before it said {event!r}")


async def ended(**settings):
    async with small_service(**settings) as process:
        _, said = await process.communicate()
    return process.returncode, said.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_told_to_stop_it_ends_with_0(number):
    async with small_service() as process:
        await until(process, "serving")
        process.send_signal(number)
        await until(process, "stopped")
        assert await process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(number):
    async with small_service(does="hangs") as process:
        await until(process, "serving")
        process.send_signal(signal.SIGTERM)
        await until(process, "hanging")
        process.send_signal(number)
        assert await process.wait() == -number


async def test_a_wrong_setting_ends_it_with_2_and_a_sentence_that_names_it():
    code, said = await ended(drain_deadline="soon")
    assert code == 2
    assert said.startswith("small: wrong settings: SOCRATIC_DRAIN_DEADLINE: ")
    assert len(said.splitlines()) == 1


async def test_what_broke_for_good_ends_it_with_1_and_a_sentence():
    code, said = await ended(does="breaks")
    assert code == 1
    last = json.loads(said.splitlines()[-1])
    assert (last["level"], last["event"]) == ("critical", "ended")
    assert last["reason"] == "the disk is full; free some space"


async def test_a_bug_ends_it_with_1_and_its_trace_in_one_line():
    code, said = await ended(does="fails")
    assert code == 1
    last = json.loads(said.splitlines()[-1])
    assert "ZeroDivisionError" in last["exception"]
    assert "hunter2" not in said


async def test_every_line_is_json_with_a_level_and_without_a_secret_whoever_wrote_it():
    code, said = await ended(does="talks", log_level="DEBUG")
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines()]
    assert all({"level", "timestamp", "service"} <= line.keys() for line in lines)
    assert "hunter2" not in said
    by_event = {line["event"]: line for line in lines}
    assert by_event["lost amqp://me@host/"]["logger"] == "aio_pika"
    assert by_event["serving"]["store"] == "postgresql://me@host/db"
    assert by_event["about a run"]["run_id"] == "run-1"
    assert any("this will change" in event for event in by_event)
    assert "everyday talk" in by_event


async def test_the_everyday_talk_of_libraries_is_left_out():
    _, said = await ended(does="talks", log_level="info")
    assert "everyday talk" not in said
    assert "a detail" not in said
    assert "lost amqp://me@host/" in said
