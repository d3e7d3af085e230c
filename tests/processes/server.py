"""Forks processes of this project on request: they start without importing anything again.

`python -m tests.processes.server FD` reads requests from a socket pair. A forked child returns from
`serve` and goes on as if Python had just started it, so signals, exit codes, tracebacks and
`atexit` are those of any other process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

PACKAGES = (
    "socratic_bench",
    "socratic_runner",
    "socratic_judge",
    "socratic_curator",
    "socratic_api",
    "socratic_cli",
)
REQUEST_BYTES = 1 << 17
STANDARD_FDS = 3
NOT_IMPORTED = (".__main__", ".testing", ".migrations", "_function")
"""Parts of the names of modules that are run, or need pytest, Alembic or Lambda around them."""

NUMBER = struct.Struct("i")
"""How a process id and an exit status are written."""


_exit_codes: list[int] = []
"""The exit code of this process, once its program has ended."""


def leave() -> None:
    """End the process after its other handlers of `atexit`.

    Python would next take all modules apart, which takes six times as long as a short command.
    """
    with suppress(OSError):  # of a closed pipe, which Python reports itself
        if _exit_codes:
            gc.collect()  # objects that were left open say so, as they do at the end of Python
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_exit_codes.pop())


def warm_up() -> None:
    """Import every module that a process of the project may need."""
    for package in PACKAGES:
        found = import_module(package)
        for each in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not any(part in each.name for part in NOT_IMPORTED):
                with suppress(ImportError):  # an extra that is not installed here
                    import_module(each.name)
    gc.collect()
    gc.freeze()


def serve(control: socket.socket) -> dict[str, Any]:
    """Fork a child for each request; returns in the child, with its request.

    The server itself ends with the process at the other end of the socket.
    """
    reports: dict[int, int] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(ended, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([control.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, STANDARD_FDS << 10)
            _reap(reports)
        if control.fileno() not in readable:
            continue
        request, fds, _, _ = socket.recv_fds(control, REQUEST_BYTES, STANDARD_FDS + 1)
        if not request:
            sys.exit(0)
        *standard, report = fds
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            for number, fd in enumerate(standard):
                os.dup2(fd, number)
            for fd in (*fds, *reports.values(), ended, wake):
                os.close(fd)
            return json.loads(request)
        reports[pid] = report
        for fd in standard:
            os.close(fd)
        os.write(report, NUMBER.pack(pid))


def _reap(reports: dict[int, int]) -> None:
    """Report the exit codes of the children that have ended."""
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        with suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(report, NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(report)


def become(request: dict[str, Any]) -> None:
    """Run a module as `python -m` does, or the installed command."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = list(request["words"])
    module = sys.argv[0]
    try:
        if module == "socratic-bench":
            import_module("socratic_cli.cli").main()
        else:
            sys.path.insert(0, request["cwd"])
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _exit_codes.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    _exit_codes.append(0)


if __name__ == "__main__":
    atexit.register(leave)  # before all others, and so the last to be called
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up()
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
