"""A grader behind an OpenAI-compatible endpoint, which counts the texts that it grades; a student.

async with grader() as model:
    ...
    assert model.calls_of_a_text.total() == len(model.calls_of_a_text)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.providers.endpoint import OPEN
from tests.servers.providers.raw_server import Request, completion, response, serving
from tests.waiting import waiting_for

USAGE = {"prompt_tokens": 400, "completion_tokens": 2}


def grade_by_hash(text: str) -> str:
    """A grade that follows from the text, for a grader that agrees with itself."""
    return str(hashlib.sha256(text.encode()).digest()[0] % 11)


@dataclass
class GraderServer:
    """The calls it received, by text."""

    reply: Callable[[str], str] = grade_by_hash
    name: str = "grader"
    address: str = ""
    """The base URL, for a configuration."""

    asked: list[str] = field(default_factory=list)
    """The texts to grade, or the conversations to go on with, in the order in which they came."""

    answered: list[str] = field(default_factory=list)
    """The texts of the calls that it answered."""

    waiting: int = 0
    """The calls that wait for their answer."""

    _kills: int = 0
    _held: bool = False
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def calls_of_a_text(self) -> Counter[str]:
        return Counter(self.asked)

    @property
    def model(self) -> dict[str, Any]:
        """The model as a configuration has it."""
        return {
            "id": f"vllm/{self.name}",
            "base_url": self.address,
            "options": {"stream": False},
            "price": {"input_per_million": 1, "output_per_million": 4},
        }

    def hold(self) -> None:
        """Answer no call from now on."""
        self._held = True

    async def drop_waiting(self) -> None:
        """Answer no call that waits now: its caller was killed."""
        async with self._news:
            self._kills += 1
            self._news.notify_all()

    async def release(self) -> None:
        """Answer all waiting calls, and later ones."""
        async with self._news:
            self._held = False
            self._news.notify_all()

    async def until_waiting(self, calls: int) -> None:
        """Wait until so many calls wait for their answer."""
        async with waiting_for(f"{calls} calls that wait for the grader"), self._news:
            await self._news.wait_for(lambda: self.waiting >= calls)

    async def until_asked(self, calls: int) -> None:
        """Wait until so many calls were made in all."""
        async with waiting_for(f"{calls} calls of the grader"), self._news:
            await self._news.wait_for(lambda: len(self.asked) >= calls)

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Grade one text, or say one message, as soon as calls are answered."""
        message = json.loads(request.body)["messages"][-1]["content"].partition("\n")[2]
        text = json.loads(message) if message.startswith('"') else message
        async with self._news:
            self.asked.append(text)
            self.waiting += 1
            self._news.notify_all()
            of_killed = self._kills
            await self._news.wait_for(lambda: not self._held or self._kills > of_killed)
            self.waiting -= 1
        if self._kills == of_killed:
            body = completion(self.reply(text), usage=USAGE)
            writer.write(response("200 OK", body, "Content-Type: application/json"))
            self.answered.append(text)


def student(reply: Callable[[str], str]) -> AbstractAsyncContextManager[GraderServer]:
    """A model that plays the student, and gets the conversation as JSON."""
    return grader(reply, "student")


@asynccontextmanager
async def grader(
    reply: Callable[[str], str] = grade_by_hash, name: str = "grader"
) -> AsyncIterator[GraderServer]:
    """A grader that answers at once, until a test holds its calls."""
    model = GraderServer(reply, name)
    async with serving(model.answer) as server:
        model.address = f"{server.address}/v1"
        OPEN.append(model.address)
        try:
            yield model
        finally:
            OPEN.remove(model.address)
