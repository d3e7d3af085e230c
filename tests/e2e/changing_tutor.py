"""A tutor whose answer changes behind one address, as its code would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from tests.e2e.command import Terminal
from tests.servers.providers.raw_server import Request, completion, response, serving

ASKS = "What might you consider first about this question, and why do you think so?"
TELLS = "You should always do this, and never that."
USAGE = {"prompt_tokens": 40, "completion_tokens": 18, "total_tokens": 58}


@dataclass
class Tutor:
    """A terminal, and a server whose answer can be changed."""

    terminal: Terminal
    address: str = ""
    says: str = ASKS
    calls: int = 0

    async def answer(self, _: Request, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        body = completion(self.says, usage=USAGE, model="tutor")
        writer.write(response("200 OK", body, "Content-Type: application/json"))

    async def command(
        self, *words: str | Path, environ: Mapping[str, str] | None = None
    ) -> CompletedProcess[str]:
        terminal = self.terminal
        if environ:
            terminal = Terminal(terminal.folder, {**terminal.environment, **environ})
        return await asyncio.to_thread(terminal.run, *words)

    def config(self, name: str, **plan: object) -> Path:
        model = {"id": "vllm/tutor", "base_url": self.address, "options": {"stream": False}}
        scenarios = [
            {"id": f"s{n}", "dimension": "student", "prompt": f"Question {n}?"} for n in range(6)
        ]
        written = {"name": name, "models": [model], "scenarios": scenarios, "repeats": 1}
        return self.terminal.write(f"{name}.json", json.dumps({**written, **plan}))


@asynccontextmanager
async def changing_tutor(folder: Path) -> AsyncIterator[Tutor]:
    """A tutor that asks, until a test has it say something else."""
    tutor = Tutor(Terminal(folder))
    async with serving(tutor.answer) as server:
        tutor.address = f"{server.address}/v1"
        yield tutor
