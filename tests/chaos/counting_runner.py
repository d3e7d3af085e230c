"""A runner that notes each call to a model in a file before it makes it.

The file outlives a killed process, so that a test knows all calls that were really made.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.ports.stores.responses import TurnKey
from socratic_runner.entrypoints import container, endpoint_secrets
from socratic_runner.models.registry import open_client

CALLS_FILE = "CHAOS_CALLS_FILE"
"""The environment variable that names the file."""


class MadeCall(NamedTuple):
    """One call to a model."""

    pid: int
    """The process that made it."""

    turn: TurnKey
    model_id: str
    at: float
    """When it was made, in seconds since 1970."""


def made_calls(file: Path) -> Sequence[MadeCall]:
    """All calls that were made, in their order."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return [
        MadeCall(int(pid), TurnKey(run_id, int(turn)), model_id, float(at))
        for pid, run_id, turn, model_id, at in lines
    ]


class _NotedClient:
    """Notes the calls of a client."""

    def __init__(self, client: ModelClient, file: int) -> None:
        self._client = client
        self._file = file

    @property
    def concurrency(self) -> int | None:
        return self._client.concurrency

    @property
    def answers_at_once(self) -> bool:
        return self._client.answers_at_once

    async def ask(self, question: Question) -> Reply:
        run = question.run
        line = f"{os.getpid()} {run.run_id} {question.turn} {run.model_id} {time.time()}\n"
        os.write(self._file, line.encode())
        return await self._client.ask(question)

    async def close(self) -> None:
        await self._client.close()


def main() -> int:
    """Run the runner; returns its exit code."""
    file = os.open(os.environ[CALLS_FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def noted(model: TutorModel, **options: Any) -> ModelClient:
        return _NotedClient(open_client(model, **options), file)

    with mock.patch.object(endpoint_secrets, "open_client", noted):
        return container.main()


if __name__ == "__main__":
    sys.exit(main())
