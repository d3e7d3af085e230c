from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.events.codec import Message
from socratic_cli.cli import main
from socratic_cli.options import store as broker_option
from tests.servers.sqlite import prepared_file

BROKER = "amqp://guest:secret@broker.example/"


@dataclass(frozen=True)
class Done:
    """The outcome of a command: its exit code and its output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class KeptBroker(MemoryBroker):
    """A broker that outlives the commands that use it, as a server does."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.published: list[Message] = []
        self.wrong: dict[str, str] = {}
        """The problem of each queue."""

    async def publish(self, messages) -> None:
        self.published += messages
        await super().publish(messages)

    async def inspect(self, queues) -> list[str]:
        queues = list(queues)
        await super().inspect(queues)
        names = [queue.name for queue in queues]
        return [problem for name, problem in self.wrong.items() if name in names]

    async def close(self) -> None:
        """Only a command's connection ends."""

    async def bury(self, queue: str, reason: str, *bodies: bytes, group: str = "a/b") -> None:
        """Publish messages and have them rejected."""
        await self.declare(WORK_QUEUES, BROADCASTS)
        event_type = next(each.event_type for each in WORK_QUEUES if each.name == queue)
        await self.publish(
            [
                Message(f"m-{number}", event_type, group, body)
                for number, body in enumerate(bodies, start=1)
            ]
        )
        async with self.consume(queue, prefetch=len(bodies)) as consumer:
            for delivery in await consumer.receive(len(bodies)):
                await consumer.reject(delivery, reason)


@pytest.fixture
def broker(monkeypatch) -> KeptBroker:
    kept = KeptBroker()

    def open_kept(url: str) -> KeptBroker:
        kept.opened.append(url)
        return kept

    monkeypatch.setattr(broker_option, "open_broker", open_kept)
    monkeypatch.setenv("SOCRATIC_BROKER_URL", BROKER)
    return kept


@dataclass(frozen=True)
class Prompt:
    """Where commands are typed: a folder with a store in it."""

    folder: Path
    _run: Callable[..., Done] = field(repr=False)

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder}/benchmark.db"

    def run(self, *words: object) -> Done:
        return self._run(*words)

    def write(self, text: str, name: str = "b.yaml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def seed(self, fill: Callable[[SqlStore], Any]) -> None:
        """Put into the store what `fill` does."""

        async def filled() -> None:
            file = self.folder / "benchmark.db"
            if not file.exists():
                await prepared_file(file)
            store = SqlStore.from_url(self.store)
            try:
                await fill(store)
            finally:
                await store.close()

        asyncio.run(filled())


@pytest.fixture
def prompt(tmp_path, monkeypatch, capsys) -> Iterator[Prompt]:
    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["socratic-bench", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int | None)
        return Done(ended.value.code or 0, out, err)

    prompt = Prompt(tmp_path, run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOCRATIC_STORE_URL", prompt.store)
    monkeypatch.delenv("SOCRATIC_BROKER_URL", raising=False)
    level = logging.getLogger().level
    yield prompt
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()
