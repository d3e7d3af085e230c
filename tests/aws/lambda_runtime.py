"""The runtime of AWS Lambda: its Runtime API for one process of AWS's own interface client.

The package of a function runs from its zip files as on AWS: the layer's folder and the function's
own, no other package beside, bytecode not written, credentials in the environment.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

from tests.aws.environment import python

CLIENT = ("awslambdaric", "simplejson", "snapshot_restore_py.py", "runtime_client*.so")
"""What AWS's interface client is made of."""

VERSION = "/2018-06-01/runtime"
WAIT_SECONDS = 60.0


class FunctionFailed(Exception):
    """The function raised an error, its process ended, or its answer came too late."""


@dataclass
class Runtime:
    """A function that waits for events."""

    process: subprocess.Popen[bytes]
    log_path: Path
    events: queue.Queue[tuple[str, dict[str, Any], float]] = field(default_factory=queue.Queue)
    answers: queue.Queue[tuple[str, Any]] = field(default_factory=queue.Queue)
    ends_at: dict[str, float] = field(default_factory=dict)
    """When each invocation ends, by its id: Lambda takes no answer after that."""

    def invoke(self, event: dict[str, Any], *, seconds: float = 30.0) -> Any:
        """What the function answers within `seconds`. Raises FunctionFailed."""
        self.events.put((str(uuid4()), event, time.time() + seconds))
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                kind, answer = self.answers.get(timeout=0.1)
            except queue.Empty:
                if self.process.poll() is not None:
                    raise FunctionFailed(f"its process ended: {self.log[-3000:]}") from None
                continue
            if kind == "response":
                return answer
            raise FunctionFailed(f"{kind}: {answer}: {self.log[-3000:]}")
        raise FunctionFailed(f"it does not answer: {self.log[-3000:]}")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the process while the context is open, as Lambda does between invocations."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @property
    def log(self) -> str:
        """What the function wrote."""
        return self.log_path.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """The lines of its log that are JSON."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]


@contextmanager
def running(
    packages: Path, package: str, handler: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[Runtime]:
    """Run a function from its packages while the context is open; `folder` gets its log."""
    task, layer = _unzipped(packages, package), _unzipped(packages, "layer")
    client = folder / "client"
    _link_client(client)
    log_path = folder / f"{package}.log"
    runtime: Runtime | None = None

    class Api(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            assert runtime is not None
            request_id, event, ends_at = runtime.events.get()
            runtime.ends_at[request_id] = ends_at
            body = json.dumps(event).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Lambda-Runtime-Aws-Request-Id", request_id)
            self.send_header("Lambda-Runtime-Trace-Id", "Root=1-0-0;Sampled=0")
            self.send_header("Lambda-Runtime-Deadline-Ms", str(round(ends_at * 1000)))
            self.send_header(
                "Lambda-Runtime-Invoked-Function-Arn",
                f"arn:aws:lambda:us-east-1:000000000000:function:{package}",
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            assert runtime is not None
            body = self.rfile.read(int(self.headers["Content-Length"]))
            *_, request_id, kind = self.path.split("/")
            if time.time() > runtime.ends_at.get(request_id, inf):
                kind = "too late"
            runtime.answers.put((kind, json.loads(body)))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [python(), "-S", "-m", "awslambdaric", handler],
            cwd=task,
            env={
                **environment,
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{task}:{layer / 'python'}:{client}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
                "AWS_LAMBDA_FUNCTION_NAME": package,
                "AWS_LAMBDA_FUNCTION_VERSION": "1",
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                "LAMBDA_TASK_ROOT": str(task),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        runtime = Runtime(process, log_path)
        try:
            yield runtime
        finally:
            process.kill()
            process.wait()
            server.shutdown()
            server.server_close()


def _unzipped(packages: Path, package: str) -> Path:
    """The contents of a package, which no function changes: unzipped once."""
    folder = packages / f"{package}-unzipped"
    if not folder.exists():
        with zipfile.ZipFile(packages / f"{package}.zip") as whole:
            whole.extractall(folder)
    return folder


def _link_client(folder: Path) -> None:
    """Put AWS's interface client into a folder of its own, without what is installed beside it."""
    [packages] = python().parents[1].glob("lib/python3*/site-packages")
    folder.mkdir(exist_ok=True)
    for pattern in CLIENT:
        for part in packages.glob(pattern):
            link = folder / part.name
            if not link.exists():
                link.symlink_to(part)
