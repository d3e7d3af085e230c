"""Processes that do the same at the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

PREPARE = """
import asyncio, sys
from socratic_bench.adapters.stores.sql.store import SqlStore

async def main():
    store = SqlStore.from_url(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    await store.prepare()
    await store.close()

asyncio.run(main())
"""
"""Prepares the store at an address."""


def at_once(script: str, *arguments: str, processes: int) -> list[str]:
    """Run `script` in several processes at once; return what each prints after its `ready`.

    A process gets its number as the last argument. It goes on after a line of input, which comes
    once all are ready.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, *arguments, str(number)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return printed
