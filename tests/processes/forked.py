"""Processes of this project, forked from a warm one: a start takes milliseconds, not a second.

Each is a process of its own, with its own signals, files and exit code. What depends on how Python
itself starts is tested with `subprocess`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from tests.processes.server import NUMBER, REQUEST_BYTES
from tests.servers.ending import ENDING

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "socratic-bench"
"""The installed command."""

READ_AT_START = {"PYTHONPATH", "SSL_CERT_FILE"}
"""Variables that Python or a library reads at the start: a forked process is too late for them."""


class _Server:
    """The warm process of this worker, started at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None

    @property
    def control(self) -> socket.socket:
        """The socket that takes requests, from several processes at once."""
        with self._lock:
            if self._control is None:
                self._control = self._start()
            return self._control

    def fork(self, request: Mapping[str, object], fds: Sequence[int]) -> None:
        message = json.dumps(request).encode()
        assert len(message) < REQUEST_BYTES
        socket.send_fds(self.control, [message], fds)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.server", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

        def end() -> None:
            ours.close()
            process.wait()

        ENDING.callback(end)
        return ours


_SERVER = _Server()


def typed_command(folder: Path) -> int:
    """Write `socratic-bench` into a folder for scripts; returns the socket that they inherit."""
    control = _SERVER.control.fileno()
    command = folder / COMMAND.name
    typed = Path(__file__).with_name("typed.py")
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{typed}" {control} "$@"\n')
    command.chmod(0o755)
    return control


class ForkedProcess:
    """A process of the project, with the part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        environment: Mapping[str, str],
        stdin: bool = False,
        stdout: bool = False,
        text: bool = False,
    ) -> None:
        """Run `words`: a module and its arguments, or `socratic-bench` and its own.

        Standard error is always a pipe; the others are pipes on request, else closed and the test's
        own.
        """
        self.args = list(words)
        self.returncode: int | None = None
        self._reaping = threading.Lock()
        mode = "" if text else "b"
        null = os.open(os.devnull, os.O_RDWR)
        theirs, ours = [null, 1, null], [-1, -1, -1]
        if stdin:
            theirs[0], ours[0] = os.pipe()
        if stdout:
            ours[1], theirs[1] = os.pipe()
        ours[2], theirs[2] = os.pipe()
        self._report, report = os.pipe()
        request = {"words": self.args, "cwd": os.fspath(cwd), "environment": dict(environment)}
        _SERVER.fork(request, [*theirs, report])
        for fd in {*theirs, null, report} - {1}:
            os.close(fd)
        self.stdin: IO[Any] | None = os.fdopen(ours[0], f"w{mode}") if stdin else None
        self.stdout: IO[Any] | None = os.fdopen(ours[1], f"r{mode}") if stdout else None
        self.stderr: IO[Any] = os.fdopen(ours[2], f"r{mode}")
        self.pid = self._number()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.stdin, self.stdout, self.stderr):
            if each is not None:
                each.close()
        self.wait()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._reap(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        code = self._reap(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write `given`, read all output and wait for the end. Raises TimeoutError."""
        with ThreadPoolExecutor(STREAMS) as threads:
            outputs = [
                None if each is None else threads.submit(each.read)
                for each in (self.stdout, self.stderr)
            ]
            if self.stdin is not None:
                with suppress(BrokenPipeError):  # it has ended without reading, or was written to
                    self.stdin.write(given or b"")
                with suppress(BrokenPipeError):
                    self.stdin.close()
            try:
                out, err = (each and each.result(timeout) for each in outputs)
            except BaseException:
                self.kill()  # ends the reading threads, too
                raise
        self.wait(timeout)
        return out, err

    def _reap(self, timeout: float | None) -> int | None:
        with self._reaping:
            if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
                self.returncode = self._number()
                os.close(self._report)
            return self.returncode

    def _number(self) -> int:
        data = os.read(self._report, NUMBER.size)
        assert data, "the server of the forked processes has died"
        (number,) = NUMBER.unpack(data)
        return int(number)


STREAMS = 2
"""Standard output and standard error, each read by a thread."""


def started(
    words: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    environment: Mapping[str, str],
    given: Mapping[str, str],
    stdin: bool = False,
    stdout: bool = False,
    text: bool = False,
) -> ForkedProcess | subprocess.Popen[Any]:
    """Start a process; `given` is the part of its environment that the test asks for.

    A test that gives it a variable of READ_AT_START gets a process that Python starts anew.
    """
    if not READ_AT_START & given.keys():
        return ForkedProcess(
            words, cwd=cwd, environment=environment, stdin=stdin, stdout=stdout, text=text
        )
    program, *rest = words
    typed = [COMMAND] if program == COMMAND.name else [sys.executable, "-m", program]
    return subprocess.Popen(
        [*typed, *rest],
        cwd=cwd,
        env=environment,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE if stdout else None,
        stderr=subprocess.PIPE,
        text=text,
    )
