"""llmock imitates OpenAI and Anthropic, and fails as a test prescribes.

Its authors do not know this project; they wrote it to test clients. It has an environment of its
own, see tests/servers/requirements.txt.
"""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from typing import Any

from tests.servers.discovery import NotHere, Server, Source
from tests.servers.http_process import ROOT, free_port, start
from tests.waiting import PATIENCE


def script(*behaviours: dict[str, Any]) -> None:
    """Forget earlier requests, and answer the next ones with these behaviours. Blocks."""
    _post("/_llmock/reset", {})
    if behaviours:
        _post("/_llmock/scenario", {"behaviors": list(behaviours)})


def requests() -> list[dict[str, Any]]:
    """The requests since the last script, oldest first. Blocks."""
    with urllib.request.urlopen(
        f"{SERVER.address()}/_llmock/requests", timeout=PATIENCE
    ) as response:
        recorded: list[dict[str, Any]] = json.load(response)["requests"]
    return recorded


def _post(path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(f"{SERVER.address()}{path}", json.dumps(body).encode())
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def _start(started: ExitStack) -> str:
    program = ROOT / ".venv-servers" / "bin" / "llmock"
    if not program.exists():
        raise NotHere("it is not installed (see tests/servers/requirements.txt)")
    port = free_port()
    arguments = ["serve", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    return start(started, [program, *arguments], port)


SERVER = Server("llmock", [Source("a private process", _start)])
