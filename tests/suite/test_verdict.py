"""A failed test gets a second try in CI alone, and an unsteady one is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verdict import HEADING, MOST, VARIABLE, without_group

ROOT = Path(__file__).parents[2]
UNSTEADY = """
import pathlib, pytest

@pytest.mark.parametrize("name", {names})
def test_sample(name):
    seen = pathlib.Path(__file__).with_name(name)
    if not seen.exists():
        seen.touch()
        raise AssertionError("slow moment of " + name)

def test_steady():
    pass
"""


def verdict(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_sample.py").write_text(text)
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-m", "tests.verdict", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_that_passes_the_second_time_is_told_with_both_logs(tmp_path: Path) -> None:
    ledger = tmp_path / "unsteady.txt"
    names = [f"name {number}" for number in range(MOST)]
    done = verdict(tmp_path, UNSTEADY.format(names=names), **{VARIABLE: str(ledger)})
    assert done.returncode == 0, done.stdout + done.stderr
    told = ledger.read_text()
    assert told.count(HEADING) == MOST
    assert all(f"slow moment of {name}" in told for name in names)
    assert told.count("1 passed") == MOST


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (UNSTEADY.format(names=["a", "b", "c", "d"]), "too many for a second try"),
        ("def test_sample():\n    raise AssertionError('again')\n", "Once more, alone"),
    ],
)
def test_a_fourth_one_and_one_that_fails_again_fail_the_run(tmp_path, text, why) -> None:
    ledger = tmp_path / "unsteady.txt"
    done = verdict(tmp_path, text, **{VARIABLE: str(ledger)})
    assert done.returncode == 1
    assert why in done.stdout
    assert not ledger.exists()


def test_without_the_variable_nothing_is_repeated(tmp_path: Path) -> None:
    done = verdict(tmp_path, UNSTEADY.format(names=["a"]))
    assert done.returncode == 1
    assert "Once more" not in done.stdout


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("tests/a.py::test_b", "tests/a.py::test_b"),
        ("tests/a.py::test_b@a group", "tests/a.py::test_b"),
        ("tests/a.py::test_b[x@y]@a group", "tests/a.py::test_b[x@y]"),
    ],
)
def test_the_group_of_a_test_is_no_part_of_its_name(shown: str, name: str) -> None:
    assert without_group(shown) == name
