"""An OpenAI-compatible endpoint in the test's own process, which sees every call that is made.

async with endpoint() as model:
    model.hold()
    ...
    await model.until_asked(1)
    await model.answer_next(1)
    await model.until_asked(9)  # eight calls are under way, and none is answered
    await model.release()
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.servers.providers.raw_server import Request, completion, response, serving
from tests.waiting import waiting_for

TEXT = "What have you tried so far?"

OPEN: list[str] = []
"""The addresses of those that are open: the runners of a test may call them."""


@dataclass
class Endpoint:
    """The calls it received, and whether it answers."""

    address: str = ""
    """The base URL, for a configuration."""

    asked: list[int] = field(default_factory=list)
    """The seed of every call, which tells the turn it is for, in the order in which they came."""

    answered: list[int] = field(default_factory=list)
    """The seeds of the calls whose caller was still there for the answer."""

    _answers_left: float = math.inf
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def config(self, *, repeats: int = 3, **limits: float) -> str:
        """A configuration with this model alone, on the default scenarios."""
        model = {
            "id": "vllm/endpoint",
            "base_url": self.address,
            "options": {"stream": False},
            "limits": limits,
        }
        return json.dumps({"models": [model], "repeats": repeats})

    @property
    def calls_of_a_turn(self) -> Counter[int]:
        """How often each turn was asked for, by its seed."""
        return Counter(self.asked)

    def hold(self) -> None:
        """Answer no call from now on."""
        self._answers_left = 0

    async def answer_next(self, calls: float) -> None:
        """Answer as many of those who wait or come, the first ones first."""
        async with self._news:
            self._answers_left = calls
            self._news.notify_all()

    async def release(self) -> None:
        """Answer all waiting calls, and later ones."""
        await self.answer_next(math.inf)

    async def until_asked(self, calls: int) -> None:
        """Wait until so many calls were made in all."""
        async with waiting_for(f"{calls} calls of the endpoint"), self._news:
            await self._news.wait_for(lambda: len(self.asked) >= calls)

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer one call, as soon as calls are answered."""
        seed = json.loads(request.body)["seed"]
        async with self._news:
            self.asked.append(seed)
            self._news.notify_all()
            await self._news.wait_for(lambda: self._answers_left > 0)
            self._answers_left -= 1
        if not writer.is_closing():
            usage = {"prompt_tokens": 100, "completion_tokens": 7}
            body = completion(TEXT, usage=usage)
            writer.write(response("200 OK", body, "Content-Type: application/json"))
            self.answered.append(seed)


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """An endpoint that answers at once, until a test holds its calls."""
    model = Endpoint()
    async with serving(model.answer) as server:
        model.address = f"{server.address}/v1"
        OPEN.append(model.address)
        try:
            yield model
        finally:
            OPEN.remove(model.address)
