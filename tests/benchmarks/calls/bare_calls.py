"""The calls of an experiment with nothing around them: the yardstick of the other benchmarks.

The program posts the questions of an experiment with aiohttp, as many at once to each model as the
experiment allows. It reads the text of each answer and commits every hundred to SQLite, which is
the least that a client with stored answers has to do.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from socratic_bench.domain.experiment.manifest import Experiment, TutorModel

COMMIT = 100
"""Answers in a transaction."""


class Took(NamedTuple):
    """What the calls took."""

    calls: int
    seconds: float
    processor_seconds: float


async def bare_calls(planned: Experiment) -> Took:
    """Make every call of an experiment of one scenario and one turn, each read whole."""
    manifest = planned.manifest
    question = {
        "messages": [
            {"role": "system", "content": manifest.system_prompt},
            {"role": "user", "content": manifest.scenarios[0].prompt},
        ],
        "max_tokens": manifest.parameters.max_tokens,
        "temperature": manifest.parameters.temperature,
        "stream": False,
        "seed": 1,
    }

    async def ask(model: TutorModel, left: Iterator[int], session: aiohttp.ClientSession) -> None:
        for _ in left:
            body = {**question, "model": model.id}
            async with session.post(f"{model.base_url}/chat/completions", json=body) as response:
                answer = json.loads(await response.read())
            store.add(model.id, answer["choices"][0]["message"]["content"])

    with _answers() as store:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            begun, begun_at = time.process_time(), time.perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for model in manifest.models:
                    left = iter(range(manifest.repeats))
                    for _ in range(model.limits.concurrency or 1):
                        tasks.create_task(ask(model, left, session))
            seconds = time.perf_counter() - begun_at
            return Took(manifest.planned_runs, seconds, time.process_time() - begun)


class _Answers:
    """A table of answers, written a hundred at a time."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._waiting: list[tuple[str, str]] = []
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE answers (model TEXT, text TEXT)")

    def add(self, model: str, text: str) -> None:
        self._waiting.append((model, text))
        if len(self._waiting) >= COMMIT:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO answers VALUES (?, ?)", self._waiting)
            self._database.execute("COMMIT")
            self._waiting.clear()


@contextmanager
def _answers() -> Iterator[_Answers]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)) as database,
    ):
        yield _Answers(database)
