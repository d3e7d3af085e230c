"""AWS as a function reaches it on a bad day: messages doubled, the table throttled, crashes.

The functions' clients speak to this proxy, which passes on what it gets to the emulator. Each
function has a path of its own, so that a fault can be for one of them.
"""

from __future__ import annotations

import http.client
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from tests.waiting import PATIENCE

SEND: Final = "SendMessageBatch"
LATEST: Final = 2
"""Seconds by which a second copy of a message may be late."""

_HOP: Final = frozenset({"connection", "content-length", "host", "transfer-encoding", "date"})

ERRORS: Final = ("ProvisionedThroughputExceededException", "ThrottlingException")


@dataclass(frozen=True)
class At:
    """The request of a function at which something happens, counted from 1."""

    function: str
    operation: str
    count: int


@dataclass(frozen=True)
class Crash:
    """The end of a function's process in the middle of a request."""

    at: At
    done: bool
    """Whether AWS still does what is asked, though nobody hears of it."""


class FaultyEndpoint:
    """A proxy before the emulator, and the faults that it makes."""

    def __init__(
        self,
        endpoint: str,
        *,
        crashes: Sequence[Crash] = (),
        purge: tuple[At, Callable[[], None]] | None = None,
        throttle_every: int = 0,
    ) -> None:
        """`purge` is called once, at its request; one in `throttle_every` requests to the table is
        refused.
        """
        self._to = urlsplit(endpoint)
        self._crashes = {crash.at: crash for crash in crashes}
        self._purge = purge
        self._throttle_every = throttle_every
        self._chance = random.Random(7)
        self._lock = Lock()
        self._seen: set[int] = set()
        self.requests: Counter[tuple[str, str]] = Counter()
        """How often each function asked for each operation."""

        self.told: Counter[str] = Counter()
        """How often there was each fault."""

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve while the context is open; yields the address, to be followed by a function."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one method per verb
        faults = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                function, _, path = self.path.removeprefix("/").partition("/")
                self.path = f"/{path}"
                answer = faults.answer(self, function, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def do_GET(self) -> None:
                self._pass_on()

            def do_POST(self) -> None:
                self._pass_on()

            def do_PUT(self) -> None:
                self._pass_on()

            def do_HEAD(self) -> None:
                self._pass_on()

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(
        self, request: BaseHTTPRequestHandler, function: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """The answer to a request; None where its sender is gone."""
        service, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        with self._lock:
            self.requests[function, operation] += 1
            at = At(function, operation, self.requests[function, operation])
            crash = self._crashes.get(at)
            of_table = sum(
                count for (_, name), count in self.requests.items() if name in _OF_THE_TABLE
            )
        if self._purge is not None and at == self._purge[0]:
            self._purge[1]()
        if crash is not None:
            if crash.done:
                self._forward(request, body)
            _kill(request.client_address[1])
            self.told["crashes"] += 1
            return None
        every = self._throttle_every
        if every and operation in _OF_THE_TABLE and of_table % every == 0:
            self.told["throttles"] += 1
            return _refusal(service, ERRORS[of_table // every % 2])
        answer = self._forward(request, body)
        if operation == SEND and (copy := self._copy(json.loads(body))):
            self._forward(request, json.dumps(copy).encode())
            self.told["copies"] += len(copy["Entries"])
        return answer

    def _copy(self, sent: dict[str, Any]) -> dict[str, Any] | None:
        """The messages among those sent that were never sent before, out of order and late."""
        with self._lock:
            fresh = [e for e in sent["Entries"] if hash(e["MessageBody"]) not in self._seen]
            self._seen |= {hash(each["MessageBody"]) for each in fresh}
            self._chance.shuffle(fresh)
            late = [{**each, "DelaySeconds": self._chance.randint(0, LATEST)} for each in fresh]
        return {**sent, "Entries": late} if late else None

    def _forward(
        self, request: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(
            str(self._to.hostname), self._to.port, timeout=PATIENCE
        )
        try:
            headers = {n: v for n, v in request.headers.items() if n.lower() not in _HOP}
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


_OF_THE_TABLE: Final = frozenset(
    {
        *("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        *("TransactWriteItems", "TransactGetItems", "BatchWriteItem"),
    }
)


def _refusal(service: str, error: str) -> tuple[int, list[tuple[str, str]], bytes]:
    kind = f"com.amazonaws.{service.lower()}#{error}"
    content = json.dumps({"__type": kind, "message": "Rate exceeded"}).encode()
    return 400, [("Content-Type", "application/x-amz-json-1.0")], content


def _kill(port: int) -> None:
    """End the process that has a connection from this port."""
    for each in psutil.net_connections("tcp4"):
        if each.laddr.port == port and each.pid is not None:
            psutil.Process(each.pid).kill()
            return
    raise AssertionError(f"no process of this machine has port {port}")
