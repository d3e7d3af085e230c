"""Somebody who just wants answers: `python -m tests.e2e.security.bystander ADDRESS PID PATH...`

A process of its own, so that it measures the server and not the crowd that is made beside it. Asks
for one path after the other, each in a connection of its own, and prints a line of JSON for each
answer: seconds, path, status. Time in which it, or the server with this PID, was ready to run and
another process had the processor is not in the seconds: it is the machine's, not the server's. It
ends once its standard input does.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path


def delays(*pids: str) -> dict[str, int]:
    """Nanoseconds that each thread of these processes has been ready to run and did not."""
    found: dict[str, int] = {}
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # it ended meanwhile
                found[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return found


def main(address: str, server: str, *paths: str) -> None:
    us = (server, str(os.getpid()))
    host = address.removeprefix("http://")
    for path in itertools.cycle(paths):
        if select.select([sys.stdin], [], [], 0.02)[0]:
            return
        before, began = delays(*us), time.perf_counter()
        connection = HTTPConnection(host, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        seconds, after = time.perf_counter() - began, delays(*us)
        kept_waiting = sum(after[each] - before[each] for each in before.keys() & after.keys())
        served = max(0.0, seconds - kept_waiting / 1e9)
        print(json.dumps([served, path, answer.status]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
