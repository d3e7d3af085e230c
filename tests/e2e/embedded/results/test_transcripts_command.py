"""`socratic-bench transcripts` and `show`: what was said, through the real commands."""

import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.command import Terminal

pytestmark = pytest.mark.xdist_group("a benchmark with transcripts")

CONFIG = """
models:
  - reference/socratic
  - reference/lecturer
repeats: 1
name: two tutors
"""
OVERALLS = re.compile(r"^  overall +(\d\.\d\d)", re.MULTILINE)
RUN = re.compile(r"^reference/\S+ .*  (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    terminal = Terminal(tmp_path_factory.mktemp("transcripts"))
    terminal.run("run", terminal.write("benchmark.yaml", CONFIG))
    return Path(terminal.database)


@pytest.fixture
def finished(ran: Path, terminal: Terminal) -> Terminal:
    shutil.copy(ran, terminal.database)
    return terminal


def test_no_line_ends_with_blanks(finished: Terminal) -> None:
    done = finished.run("transcripts", "two tutors")

    assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]


def test_the_runs_of_a_model_are_shown_with_their_arithmetic(finished: Terminal) -> None:
    done = finished.run("transcripts", "two tutors", "--model", "reference/socratic")

    assert len(RUN.findall(done.stdout)) == 10
    assert "reference/lecturer" not in done.stdout
    assert "student, turn 1" in done.stdout
    assert re.search(r"  verbosity +\d\.\d\d  1 - min\(", done.stdout)
    assert "\u27e6" in done.stdout
    assert "--limit 20 shows more" in done.stderr


def test_the_worst_come_first(finished: Terminal) -> None:
    shown = finished.run("transcripts", "two tutors", "--worst", "4").stdout
    every = finished.run("transcripts", "two tutors", "--limit", "100").stdout

    worst = list(map(float, OVERALLS.findall(shown)))
    assert worst == sorted(map(float, OVERALLS.findall(every)))[:4]


def test_one_run_is_shown_by_the_id_that_the_list_gives(finished: Terminal) -> None:
    listed = finished.run("transcripts", "two tutors", "--limit", "1").stdout
    [run_id] = RUN.findall(listed)

    assert finished.run("show", run_id).stdout == listed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("transcripts", "winter"), "there is no experiment 'winter'"),
        (("transcripts", "two tutors", "--model", "a/b"), "the experiment has no model 'a/b'"),
        (("transcripts", "two tutors", "--scenario", "x"), "the experiment has no scenario 'x'"),
        (("show", "run-none"), "no failure of a run 'run-none'"),
    ],
)
def test_what_is_not_there_is_named(finished: Terminal, words: tuple[str, ...], told: str) -> None:
    done = finished.run(*words)

    assert done.returncode == 2
    assert told in done.stderr
