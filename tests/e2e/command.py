"""The `socratic-bench` command, as a person or a script runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import evidence
from tests.processes.forked import COMMAND, started
from tests.waiting import PATIENCE


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
        with started(
            [COMMAND.name, *map(str, words)],
            cwd=self.folder,
            environment=self.environ(),
            given=self.environment,
            stdin=stdin,
            stdout=True,
            text=text,
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


def _keep(words, how: str, out: str | bytes, err: str | bytes) -> None:
    """Keep a command's output for the report of a failed test."""
    typed = " ".join(["socratic-bench", *map(str, words)])
    evidence.keep(f"{typed}: {how}", lambda: f"stdout: {out!r}\nstderr: {err!r}")
