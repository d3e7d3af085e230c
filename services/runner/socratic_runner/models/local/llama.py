"""Runs llama.cpp in this process, through xllamacpp: a model file, and a copy of it for each core.

A copy answers one call at a time on one thread. Several calls in one batch of a copy round
differently from one time to the next, and so give other texts. A second thread of a copy spins
where another process has the core. The copies share the weights in memory.

xllamacpp always opens a listener. Here that is a Unix socket in a folder of this user, so no
network port is open. Without Unix sockets it is a free loopback port with a random key.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from socratic_bench.errors import FailureKind, ModelCallFailed

CONTEXT_TOKENS: Final = 2048
"""The tokens that the model can read and write in one call."""

MOST_COPIES: Final = 4
"""More copies of a model take memory, and leave other processes no core."""

_TOKENS_BETWEEN_STOPS = 64
"""The tokens of a prompt that the model reads between two checks for a cancellation."""


class _Server(Protocol):
    """The part of `xllamacpp.Server` that is used here; it has no type stubs."""

    def handle_chat_completions(
        self, body: dict[str, Any], on_chunk: Callable[[dict[str, Any]], bool], /
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Completion:
    """The text and counts of one call."""

    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int
    seconds: float
    """From the start of the call to its end, without the wait for its turn."""


class CallStopped(Exception):
    """The caller stopped the call."""


def copies_here() -> int:
    """Return the number of copies of a model that this process runs: one for each of its cores."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores, MOST_COPIES)


class Llama:
    """A model file; a call loads a copy of it if all loaded ones are busy."""

    def __init__(self, path: Path, copies: int) -> None:
        self.path = path
        self.copies = copies
        self._threads = ThreadPoolExecutor(copies, thread_name_prefix="llama")
        self._loading = threading.Lock()
        self._idle: list[_Copy] = []

    def complete(self, body: dict[str, Any], stop: threading.Event) -> Future[Completion]:
        """Complete a chat in OpenAI's format, in turn.

        The future raises ModelCallFailed, or Stopped soon after `stop` is set.
        """
        return self._threads.submit(self._complete, body, stop)

    def close(self) -> None:
        """Unload the model and end its threads. Blocks until running calls have ended."""
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().unload()

    def _complete(self, body: dict[str, Any], stop: threading.Event) -> Completion:
        if stop.is_set():
            raise CallStopped
        copy = self._idle_copy()
        try:
            return copy.complete(body, stop)
        finally:
            self._idle.append(copy)

    def _idle_copy(self) -> _Copy:
        with self._loading:
            return self._idle.pop() if self._idle else _Copy(self.path)


class _Copy:
    """One loaded copy of a model. Raises ModelCallFailed for a file that cannot be loaded."""

    def __init__(self, path: Path) -> None:
        xllamacpp = import_module("xllamacpp")
        self._folder = tempfile.TemporaryDirectory(prefix="llama-")
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = CONTEXT_TOKENS
        params.n_batch = _TOKENS_BETWEEN_STOPS
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.cache_ram_mib = 0
        params.ui = False
        params.verbosity = 0
        params.api_keys = [secrets.token_urlsafe()]
        params.port = 0
        # An empty list of host names crashes the process. A name that ends with .sock is a Unix
        # socket, which must not exist yet.
        unix_socket = Path(self._folder.name, "llama.sock")
        params.hostnames = [str(unix_socket) if hasattr(socket, "AF_UNIX") else "127.0.0.1"]
        try:
            self._server: _Server = xllamacpp.Server(params)
        except RuntimeError as error:
            self._folder.cleanup()
            message = f"{path} cannot be loaded: {error}"
            raise ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False) from error

    def complete(self, body: dict[str, Any], stop: threading.Event) -> Completion:
        """Complete a chat on the caller's thread."""
        stream = _Stream(stop)
        started = time.perf_counter()
        self._server.handle_chat_completions(
            {
                **body,
                "cache_prompt": False,
                "stream": True,
                "stream_options": {"include_usage": True},
                "return_progress": True,
            },
            stream.take,
        )
        return stream.completion(time.perf_counter() - started)

    def unload(self) -> None:
        """Free the memory and the socket."""
        del self._server
        self._folder.cleanup()


class _Stream:
    """The chunks of one call, as they arrive."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._texts: list[str] = []
        self._finish_reason: str | None = None
        self._usage: dict[str, int] | None = None
        self._problem: dict[str, Any] | None = None
        self._malformed: Exception | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Take a chunk; True stops the call. An exception here would be lost in C++."""
        try:
            self._read(chunk)
        except (KeyError, IndexError, TypeError) as error:
            self._malformed = error
        return self._stop.is_set() or self._malformed is not None

    def _read(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk:
            self._problem = chunk["error"]
            return
        for choice in chunk["choices"]:
            self._texts.append(choice["delta"].get("content") or "")
            self._finish_reason = choice["finish_reason"] or self._finish_reason
        if "usage" in chunk:
            self._usage = chunk["usage"]

    def completion(self, seconds: float) -> Completion:
        """Return the completion, once the stream has ended."""
        if self._stop.is_set():
            raise CallStopped
        if self._problem is not None:
            raise _failure(self._problem)
        if self._malformed is not None:
            message = f"a chunk cannot be read: {self._malformed!r}"
            raise ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)
        if self._finish_reason is None or self._usage is None:
            message = "the reply ended without a stop reason"
            raise ModelCallFailed(FailureKind.CUT_STREAM, message, retryable=True)
        return Completion(
            text="".join(self._texts),
            finish_reason=self._finish_reason,
            input_tokens=self._usage["prompt_tokens"],
            output_tokens=self._usage["completion_tokens"],
            seconds=seconds,
        )


def _failure(problem: dict[str, Any]) -> ModelCallFailed:
    message = str(problem.get("message", problem))
    if problem.get("type") == "exceed_context_size_error":
        return ModelCallFailed(FailureKind.CONTEXT_TOO_LONG, message, retryable=False)
    if problem.get("code") == 400:
        return ModelCallFailed(FailureKind.BAD_REQUEST, message, retryable=False)
    return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=True)


class SharedLlamas:
    """Holds each model file in a process while it has users, who share its copies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_use: dict[Path, tuple[Llama, int]] = {}

    def acquire(self, path: Path) -> Llama:
        """Return the model of a file; the caller releases it."""
        with self._lock:
            llama, users = self._in_use.get(path) or (Llama(path, copies_here()), 0)
            self._in_use[path] = llama, users + 1
            return llama

    def release(self, llama: Llama) -> None:
        """Release a model. Its last user unloads it, which blocks for a moment."""
        with self._lock:
            _, users = self._in_use[llama.path]
            if users > 1:
                self._in_use[llama.path] = llama, users - 1
                return
            del self._in_use[llama.path]
        llama.close()
