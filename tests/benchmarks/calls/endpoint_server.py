"""An endpoint of OpenAI's form that answers after a given time; run as a process of its own.

    python -m tests.benchmarks.calls.endpoint_server

It prints its address. The path says what happens: `/200/1/model/v1` answers after 200 ms,
`/200~60/1/model/v1` after 140 to 260 ms, all equally likely, `/hang/1/model/v1` never. The number
is that of a trial: in each trial a model takes the same times for its first call, its second call,
and so on.

It reads just enough of HTTP to answer, since a server that is busy answers late: a web framework
in its place made 200 ms of 100 calls in step 203.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import selectors
from collections.abc import Iterator
from typing import Final

ANSWER = "What have you tried so far, and what happened then?"
USAGE = {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72}
WHOLE = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fixed",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": ANSWER},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }
).encode()

_LATENCY: Final = re.compile(rb"POST /(hang|(\d+)(?:~(\d+))?)/\d+/([^/ ]+)/")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def _event(contents: dict[str, object]) -> bytes:
    return b"data: " + json.dumps({"id": "chatcmpl-1", "model": "fixed", **contents}).encode()


def _delta(text: str, finish_reason: str | None = None) -> bytes:
    delta = {"content": text} if text else {}
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


STREAM = b"\n\n".join(
    [
        *(_delta(word + " ") for word in ANSWER.split()),
        _delta("", "stop"),
        _event({"choices": [], "usage": USAGE}),
        b"data: [DONE]",
        b"",
    ]
)


def _response(content_type: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


WHOLE_RESPONSE: Final = _response("application/json", WHOLE)
STREAM_RESPONSE: Final = _response("text/event-stream", STREAM)


def latencies(model: str, usual: int, scatter: int) -> Iterator[float]:
    """The milliseconds that a model takes for its calls, one after the other."""
    draws = random.Random(model)
    while True:
        yield usual + draws.uniform(-scatter, scatter)


class _Endpoint(asyncio.Protocol):
    """Answers the requests of one connection, one after the other."""

    def __init__(self, models: dict[bytes, Iterator[float]]) -> None:
        """`models` has the latencies of each path of a model that was called before."""
        self._models = models

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or length is None or len(body) < int(length[1]):
            return
        self._received = b""
        latency = _LATENCY.match(head)
        assert latency is not None, head
        if latency[1] == b"hang":
            return
        path = latency[0]
        if path not in self._models:
            usual, scatter = int(latency[2]), int(latency[3] or 0)
            self._models[path] = latencies(latency[4].decode(), usual, scatter)
        milliseconds = next(self._models[path])
        answer = STREAM_RESPONSE if json.loads(body).get("stream") else WHOLE_RESPONSE
        loop = asyncio.get_running_loop()
        loop.call_later(milliseconds / 1000, self._transport.write, answer)


def _punctual_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers end to the microsecond: epoll counts in whole milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    models: dict[bytes, Iterator[float]] = {}
    server = await loop.create_server(lambda: _Endpoint(models), "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_punctual_loop) as runner:
        runner.run(_serve())
