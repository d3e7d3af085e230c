"""HTTP servers that tests need: a process each, at a free port of the loopback address."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.servers.discovery import START_SECONDS, NotHere

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port without a listener, for now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def start(
    started: ExitStack,
    command: Sequence[str | Path],
    port: int,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Start a server that listens at `port`, to be ended by the stack, and wait until it does.

    Returns its address. Blocks; raises NotHere where it does not come up.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise NotHere(f"{command[0]} failed: {error}") from error
    started.callback(stop, process)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return f"http://127.0.0.1:{port}"
    raise NotHere(f"{command[0]} did not come up")


def stop(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """End a process, if need be by force."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)
