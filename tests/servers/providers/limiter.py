"""An OpenAI-compatible endpoint that accepts some calls per period, and also counts refused calls.

OpenAI describes its own limits so: "unsuccessful requests contribute to your per-minute limit". The
endpoint does not say how long to wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.servers.providers.raw_server import Request, completion, response, serving

TEXT = "What have you tried so far?"
JSON = "Content-Type: application/json"


@dataclass
class Limiter:
    """The admitted and refused calls so far."""

    most: int
    """Calls in each `window`, those it refuses included."""

    window: float
    address: str = ""
    answered: int = 0
    refused: int = 0
    _counted: deque[float] = field(default_factory=deque)

    def config(self, *, repeats: int) -> str:
        """A configuration with this model alone, on the default scenarios."""
        model = {"id": "vllm/limited", "base_url": self.address, "options": {"stream": False}}
        return json.dumps({"models": [model], "repeats": repeats})

    async def answer(self, _request: Request, writer: asyncio.StreamWriter) -> None:
        now = asyncio.get_running_loop().time()
        while self._counted and self._counted[0] <= now - self.window:
            self._counted.popleft()
        self._counted.append(now)
        if len(self._counted) > self.most:
            self.refused += 1
            error = {"error": {"message": "Rate limit reached.", "type": "requests"}}
            writer.write(response("429 Too Many Requests", json.dumps(error).encode(), JSON))
        else:
            self.answered += 1
            usage = {"prompt_tokens": 100, "completion_tokens": 7}
            writer.write(response("200 OK", completion(TEXT, usage=usage), JSON))


@asynccontextmanager
async def limiter(*, most: int = 20, window: float = 2.0) -> AsyncIterator[Limiter]:
    """A limiter in the test's own process."""
    limited = Limiter(most, window)
    async with serving(limited.answer) as server:
        limited.address = f"{server.address}/v1"
        yield limited
