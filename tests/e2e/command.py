"""The `socratic-bench` command, as a person or a script runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import evidence
from tests.processes.forked import ForkedProcess
from tests.waiting import PATIENCE

COMMAND = Path(sys.executable).parent / "socratic-bench"
"""The installed command, for what depends on how Python starts."""

READ_AT_IMPORT = {"PYTHONPATH", "SSL_CERT_FILE"}
"""Variables that Python or a library reads at the start: a forked process is too late for them."""


@dataclass(frozen=True)
class Terminal:
    """A folder to work in, with a store in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.folder / "benchmark.db"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.database}"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def environ(self) -> dict[str, str]:
        impatient = {"SOCRATIC_RUNNER_FIRST_DELAY": "0.01"}
        return {**os.environ, **impatient, "SOCRATIC_STORE_URL": self.store, **self.environment}

    def run(self, *words, given: str | bytes = "") -> subprocess.CompletedProcess[str]:
        """Type a command, and wait for its end."""
        given = given.encode() if isinstance(given, str) else given
        with self.started(*words, stdin=True, text=False) as running:
            out, err = (each.decode() for each in running.communicate(given, timeout=PATIENCE))
        _keep(words, f"exit code {running.returncode}", out, err)
        return subprocess.CompletedProcess(running.args, running.wait(), out, err)

    @contextmanager
    def started(self, *words, stdin: bool = False, text: bool = True) -> Iterator[Any]:
        """Type a command; it is killed in the end if it is still there."""
        typed, environment = [*map(str, words)], self.environ()
        with (
            self._anew(typed, environment, stdin=stdin, text=text)
            if READ_AT_IMPORT & self.environment.keys()
            else ForkedProcess(
                ["socratic-bench", *typed],
                cwd=self.folder,
                environment=environment,
                stdin=stdin,
                stdout=True,
                text=text,
            )
        ) as running:
            try:
                yield running
            except BaseException:
                how = "still running" if running.poll() is None else f"exit code {running.poll()}"
                running.kill()
                if not running.stdout.closed:
                    _keep(words, how, *running.communicate())
                raise
            running.kill()

    def _anew(self, words, environment, *, stdin: bool, text: bool) -> subprocess.Popen:
        return subprocess.Popen(
            [COMMAND, *words],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=environment,
            text=text,
        )


def _keep(words, how: str, out: str | bytes, err: str | bytes) -> None:
    """Keep a command's output for the report of a failed test."""
    typed = " ".join(["socratic-bench", *map(str, words)])
    evidence.keep(f"{typed}: {how}", lambda: f"stdout: {out!r}\nstderr: {err!r}")
