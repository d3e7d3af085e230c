"""The start of `socratic-bench --help`, beside the import of the library that parses options.

    python -m tests.benchmarks.command_start [ROUNDS]

Each figure is the processor time of a whole process. The two are started in turn, so that the ratio
holds when the machine's speed drifts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 20
COMMANDS = {
    "socratic-bench --help": [str(Path(sys.executable).parent / "socratic-bench"), "--help"],
    "import click": [sys.executable, "-c", "import click"],
}


def processor_seconds(command: list[str]) -> float:
    """User and system time of a process, from its start to its end."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def main(rounds: int = ROUNDS) -> None:
    """Print the median of each, and their ratio."""
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            took[name].append(processor_seconds(command))
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    for name, seconds in medians.items():
        print(f"{name:24} {seconds * 1e3:6.1f} ms of processor time")
    ours, click = medians.values()
    print(f"ratio {ours / click:.2f} of {rounds} pairs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
