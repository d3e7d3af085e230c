"""Servers that end their connections without announcing it lose no run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.e2e.command import Terminal
from tests.servers.providers.certificates import certificate_for
from tests.servers.providers.raw_server import Request, completion, response, serving

RUNS = 100
CONFIG = """
models:
  - id: openai-compatible/m
    base_url: "{address}/v1"
    options: {{stream: false}}
scenarios: [student-bigger-fraction]
repeats: {runs}
"""


@pytest.mark.parametrize("seconds", [0.0, 0.02])
async def test_every_run_of_a_server_over_tls_that_closes_after_its_replies_is_done(
    tmp_path: Path, seconds: float
):
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        body = completion("What do you think?", usage=usage)
        writer.write(response("200 OK", body, "Content-Type: application/json"))
        await writer.drain()
        await asyncio.sleep(seconds)  # the server's own deadline for idle connections
        writer.close()

    certificate = certificate_for("IP:127.0.0.1", tmp_path)
    terminal = Terminal(tmp_path, {"SSL_CERT_FILE": str(certificate.trusted)})
    async with serving(answer, tls=certificate.context) as server:
        config = terminal.write("benchmark.yaml", CONFIG.format(address=server.address, runs=RUNS))
        done = await asyncio.to_thread(terminal.run, "run", config)
    assert done.returncode == 0, done.stderr
    assert f"{RUNS} runs done, none failed" in done.stderr
    # A call is lost where the end of its connection crosses it; then each gets its own.
    assert RUNS <= len(server.requests) <= RUNS * 1.2
