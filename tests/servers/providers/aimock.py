"""aimock imitates model providers; the name of the model decides about its answer.

Its authors do not know this project; they wrote it to test clients. It runs on Node, see
tests/servers/package.json.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.servers.discovery import NotHere, Server, Source, missing
from tests.servers.http_process import ROOT, free_port, start

TEXT = "What do you notice when you read it aloud?"
KEY = "a-key-for-aimock"

MODELS: dict[str, dict[str, Any]] = {
    "well": {
        "response": {
            "content": TEXT,
            "usage": {"prompt_tokens": 42, "completion_tokens": 11, "total_tokens": 53},
        }
    },
    "cut-off": {"response": {"content": TEXT, "finishReason": "length"}},
    "filtered": {"response": {"content": "No.", "finishReason": "content_filter"}},
    "reasoning": {"response": {"content": TEXT, "reasoning": "They seem stuck. I will ask."}},
    "limited": {
        "response": {
            "error": {"message": "Slow down, please.", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 7,
        }
    },
    "overloaded": {
        "response": {
            "error": {"message": "Overloaded", "type": "overloaded_error"},
            "status": 529,
        }
    },
    "broke": {
        "response": {
            "error": {
                "message": "You exceeded your current quota.",
                "type": "insufficient_quota",
                "code": "insufficient_quota",
            },
            "status": 429,
        }
    },
    "truncated-stream": {"response": {"content": TEXT}, "chunkSize": 5, "truncateAfterChunks": 3},
    "lost-stream": {
        "response": {"content": TEXT},
        "chunkSize": 2,
        "latency": 40,
        "disconnectAfterMs": 100,
    },
    "malformed": {"response": {"content": TEXT}, "chaos": {"malformedRate": 1}},
    "disconnecting": {"response": {"content": TEXT}, "chaos": {"disconnectRate": 1}},
    "hanging": {"response": {"content": TEXT}, "chaos": {"latencyMs": 30000}},
    "slow": {"response": {"content": TEXT}, "chunkSize": 4, "latency": 20},
}
"""What each model does."""


def start_apart(started: ExitStack, *arguments: str) -> str:
    """Start one with these arguments besides, to be ended by the stack; returns its address.

    Blocks. Where it cannot be started the test that asks is skipped, or fails in CI.
    """
    try:
        return _start(started, *arguments)
    except NotHere as error:
        missing(f"no aimock for this test: {error}")


def _start(started: ExitStack, *more: str) -> str:
    node = shutil.which("node")
    if node is None:
        raise NotHere("Node is not installed")
    package = ROOT / "tests" / "servers" / "node_modules" / "@copilotkit" / "aimock"
    if not package.exists():
        raise NotHere("it is not installed (see tests/servers/package.json)")
    folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="aimock-")))
    fixtures = [{"match": {"model": name}, **does} for name, does in MODELS.items()]
    (folder / "models.json").write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    port = free_port()
    arguments = ["--port", str(port), "--fixtures", str(folder), "--log-level", "silent"]
    command = [node, str(package / "dist" / "cli.js"), *arguments, "--strict", *more]
    return start(started, command, port, {"AIMOCK_API_KEYS": KEY})


SERVER = Server("aimock", [Source("a private process", _start)])
