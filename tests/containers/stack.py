"""The containers of `make up`, as a project of a test's own, and the commands of its user."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.containers.engine import Engine
from tests.e2e.command import Terminal

ROOT = Path(__file__).parents[2]
PORTS = ("API_PORT", "RABBITMQ_PORT", "RABBITMQ_PAGE_PORT", "POSTGRES_PORT", "EMULATOR_PORT")


@dataclass(frozen=True)
class Stack:
    """The running containers of a project of this test's own."""

    environment: dict[str, str]
    file: str = "compose.yaml"
    variables: tuple[str, ...] = field(default=())
    """What `make` is told each time, such as BROKER=sqs."""

    @property
    def command(self) -> tuple[str, ...]:
        return ("docker", "compose", "--file", f"deploy/compose/{self.file}")

    def run(self, *words: str, deadline: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=deadline,
            check=False,
        )

    def compose(self, *words: str) -> str:
        done = self.run(*self.command, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def containers(self, *words: str) -> list[dict[str, object]]:
        lines = self.compose("ps", "--all", "--format", "json", *words).splitlines()
        return [json.loads(line) for line in lines]

    def up(self, *words: str) -> str:
        done = self.run("make", "up", *self.variables, *words, deadline=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def addresses(self) -> dict[str, str]:
        done = self.run("sh", "deploy/compose/addresses.sh")
        assert done.returncode == 0, done.stderr
        return dict(re.findall(r"^export (\w+)='(.*)'$", done.stdout, re.MULTILINE))


@contextmanager
def stack_of(running: Engine, file: str, *variables: str) -> Iterator[Stack]:
    """A project without containers, with ports and passwords of its own; all is gone afterwards."""
    stack = Stack(
        {
            **running.environment,
            "COMPOSE_PROJECT_NAME": f"socratic-bench-test-{secrets.token_hex(4)}",
            "RABBITMQ_PASSWORD": secrets.token_hex(8),
            "POSTGRES_PASSWORD": secrets.token_hex(8),
            **dict.fromkeys(PORTS, "0"),
        },
        file,
        variables,
    )
    try:
        yield stack
    finally:
        stack.run(*stack.command, "down", "--volumes", "--timeout", "1")


def submitted(terminal: Terminal, config: str) -> str:
    """Submit a benchmark as a person does; its experiment's id."""
    done = terminal.run("submit", terminal.write("benchmark.yaml", config), "--json")
    assert done.returncode == 0, done.stderr
    experiment_id: str = json.loads(done.stdout)["experiment_id"]
    return experiment_id


def assert_all_was_counted_once(terminal: Terminal, experiment_id: str, runs: int) -> None:
    """Wait for the end of an experiment."""
    watched = terminal.run("watch", experiment_id, "--json")
    assert watched.returncode == 0, watched.stderr
    result = json.loads(watched.stdout)
    assert (result["done"], result["failed"]) == (runs, 0)
    assert sum(model["total_runs"] for model in result["leaderboard"]["models"]) == runs
    verified = terminal.run("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
