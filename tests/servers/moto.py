"""AWS as moto imitates it, beside MiniStack: slower, and with other faults.

It takes seconds for a thousand messages of SQS, and hands one out twice now and then.
"""

from __future__ import annotations

from contextlib import ExitStack

from tests.servers.discovery import NotHere, Server, Source
from tests.servers.http_process import ROOT, free_port, start


def _private_process(started: ExitStack) -> str:
    program = ROOT / ".venv-servers" / "bin" / "moto_server"
    if not program.exists():
        raise NotHere(f"{program} is not installed (see tests/servers/requirements.txt)")
    port = free_port()
    return start(started, [program, "-H", "127.0.0.1", "-p", str(port)], port)


SERVER = Server("second AWS emulator", [Source("a private process", _private_process)])
