from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from tests.waiting import waiting_for


class Log:
    """The log, for tests that wait for an event of it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def __call__(self, _logger: Any, method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
        self.lines.append({**line, "level": method})
        self._news.set()
        raise structlog.DropEvent

    async def until(self, event: str) -> dict[str, Any]:
        """The first line with this event, waited for."""
        async with waiting_for(f"the log line {event!r}"):
            while True:
                for line in self.lines:
                    if line["event"] == event:
                        return line
                self._news.clear()
                await self._news.wait()


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    structlog.configure(processors=[log])
    yield log
    structlog.reset_defaults()
