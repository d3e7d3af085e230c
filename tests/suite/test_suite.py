"""The basis of all tests: signals, lengths, and the report of a failure."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.processes.forked import ForkedProcess

ROOT = Path(__file__).parents[2]


def run_in_background(folder: Path, test: str, **environment: str) -> str:
    """Run a test as a background job of a shell; return pytest's output."""
    path = folder / "test_sample.py"
    path.write_text(textwrap.dedent(test))
    # As a shell without job control does it; a handler set in this process would not be inherited.
    ignore = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    done = subprocess.run(
        [
            *(sys.executable, "-c", ignore + "os.execv(sys.executable, sys.argv[1:])"),
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"),
            *(f"--rootdir={folder}", "--asyncio-mode=auto", str(path)),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_process_heeds_ctrl_c_however_the_suite_was_started(tmp_path: Path) -> None:
    said = run_in_background(
        tmp_path,
        """
        import subprocess, sys

        def test_sample():
            ask = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
            command = [sys.executable, "-c", ask]
            assert subprocess.run(command, capture_output=True, text=True).stdout == "False\\n"
        """,
    )
    assert "1 passed" in said, said


def test_a_failure_shows_its_seed_what_it_waited_for_and_what_its_processes_said(
    tmp_path: Path,
) -> None:
    said = run_in_background(
        tmp_path,
        """
        import asyncio
        from tests import evidence
        from tests.e2e.command import Terminal
        from tests.e2e.service_processes import started
        from tests.waiting import waiting_for

        def test_passes():
            evidence.keep("of another test", lambda: "is not shown")

        async def test_fails(tmp_path):
            evidence.chance()
            Terminal(tmp_path).run("status", "--store", "kafka://")
            async with started("judge", {"SOCRATIC_BROKER_URL": "kafka://"}) as judge:
                await judge.ended()
            async with waiting_for("Godot", patience=0.01):
                await asyncio.sleep(3600)
        """,
        SOCRATIC_TEST_SEED="42",
    )
    assert "1 failed, 1 passed" in said, said
    assert "SOCRATIC_TEST_SEED=42 repeats this test" in said
    assert "waited 0.01 s for Godot" in said
    assert "socratic-bench status --store kafka://: exit code 2" in said
    assert "- log of judge" in said
    assert "socratic_judge: " in said
    assert "is not shown" not in said


@pytest.mark.parametrize(("length", "number"), [("short", 3), ("long", 20)])
def test_a_test_has_the_length_of_its_stage(tmp_path: Path, length: str, number: int) -> None:
    said = run_in_background(
        tmp_path,
        f"""
        from tests.lengths import at_length

        def test_sample():
            assert at_length(3, 20) == {number}
        """,
        SOCRATIC_TEST_LENGTH=length,
    )
    assert "1 passed" in said, said


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('no store')", 1, "no store\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("loop = asyncio.new_event_loop()", 0, "ResourceWarning: unclosed event loop"),
    ],
)
def test_a_forked_process_ends_as_any_other(tmp_path: Path, end: str, code: int, said: str) -> None:
    program = f"""
        import asyncio, atexit, sys, threading, warnings

        warnings.simplefilter("always")
        atexit.register(print, "handler", end="")
        threading.Thread(target=lambda: threading.main_thread().join() or print("thread")).start()
        {end}
    """
    (tmp_path / "ending.py").write_text(textwrap.dedent(program))
    with ForkedProcess(["ending"], cwd=tmp_path, environment={}, stdout=True) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (code, b"thread\nhandler")
    assert said in err.decode()
