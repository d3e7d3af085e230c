"""The `socratic-bench` command, as a person or a script runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = Path(sys.executable).parent / "socratic-bench"
DEADLINE = 300


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
        done = subprocess.run(
            [COMMAND, *map(str, words)],
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            cwd=self.folder,
            env=self.environ(),
            timeout=DEADLINE,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def start(self, *words) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environ(),
        )
