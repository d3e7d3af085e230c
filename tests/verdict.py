"""`python -m tests.verdict …`: pytest, and in CI a second try for a failed test.

Where SOCRATIC_TEST_UNSTEADY names a file, a test that fails runs once more, alone and in a process
of its own. If it passes then, it is *unsteady*: the file gets its name and both logs, and the run
does not fail. A run has three unsteady tests at most, over all its stages. Without the variable
this is pytest alone: `make test` repeats nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "SOCRATIC_TEST_UNSTEADY"
MOST: Final = 3
HEADING: Final = "UNSTEADY: "
TESTS_FAILED: Final = 1


class Failures:
    """The failed tests of a run, with their reports."""

    def __init__(self) -> None:
        self.logs: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            texts = [
                report.longreprtext,
                *(f"- {name} -\n{text}" for name, text in report.sections),
            ]
            test = without_group(report.nodeid)
            self.logs[test] = "\n".join([*self.logs.get(test, "").splitlines(), *texts])
            # A run that its time limit ends would name no failure.
            print(f"\nFAILED {test}", flush=True)


def without_group(nodeid: str) -> str:
    """Return the name of a test without the group that pytest-xdist writes behind it."""
    end = nodeid.rfind("]") + 1
    head, tail = nodeid[:end], nodeid[end:]
    return head + tail.partition("@")[0]


def run(words: list[str]) -> int:
    """Run pytest with `words`; returns its exit code, or 0 if each failed test is unsteady."""
    failures = Failures()
    code = int(pytest.main(words, plugins=[failures]))
    ledger = os.environ.get(VARIABLE)
    if code != TESTS_FAILED or not ledger:
        return code
    return second_try(failures.logs, Path(ledger))


def second_try(failed: dict[str, str], ledger: Path) -> int:
    """Run each failed test alone; returns 0 if all pass and few enough are unsteady."""
    told = ledger.read_text() if ledger.exists() else ""
    if told.count(HEADING) + len(failed) > MOST:
        print(f"\n{len(failed)} tests failed: too many for a second try (at most {MOST} in a run).")
        return TESTS_FAILED
    code = 0
    for test, first in failed.items():
        print(f"\nOnce more, alone: {test}", flush=True)
        again = subprocess.run(
            [sys.executable, "-m", "pytest", test],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(again.stdout, flush=True)
        if again.returncode:
            code = TESTS_FAILED
            continue
        with ledger.open("a") as file:
            file.write(f"{HEADING}{test}\n== first try\n{first}\n== second try\n{again.stdout}\n")
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
