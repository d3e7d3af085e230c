"""A key leaves for a foreign address only if that was said before, or a person agrees."""

from __future__ import annotations

import asyncio
import os
import pty
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import evidence
from tests.e2e.command import Terminal
from tests.processes.forked import COMMAND
from tests.servers.providers.certificates import certificate_for
from tests.servers.providers.listed import listed
from tests.servers.providers.raw_server import (
    RawServer,
    Request,
    completion,
    read_request,
    response,
    serving,
)
from tests.waiting import PATIENCE

KEY = "sk-planted-for-approval-77"
CONFIG = """
models:
  - id: openai-compatible/m
    base_url: "{address}/v1"
    options: {{stream: false, api_key_env: OUR_KEY}}
scenarios: [student-bigger-fraction]
repeats: 1
"""


async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    body = completion("What do you think?", usage=usage)
    writer.write(response("200 OK", body, "Content-Type: application/json"))


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with serving(answer) as server:
        yield server


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    config_folder = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    return Terminal(tmp_path, {"OUR_KEY": KEY, **config_folder, "SOCRATIC_ENDPOINTS": ""})


@pytest.fixture
def remembered(tmp_path: Path) -> Path:
    return tmp_path / "config" / "socratic-bench" / "known-endpoints"


async def run(terminal: Terminal, server: RawServer, *words: str):
    config = terminal.write("b.yaml", CONFIG.format(address=server.address))
    return await asyncio.to_thread(terminal.run, "run", config, *words)


async def run_on_a_terminal(terminal: Terminal, server: RawServer, typed: str) -> tuple[int, str]:
    """The exit code, and a person's view besides the results."""
    config = terminal.write("b.yaml", CONFIG.format(address=server.address))
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        done = await asyncio.to_thread(
            subprocess.run,
            [str(COMMAND), "run", str(config)],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            cwd=terminal.folder,
            env=terminal.environ(),
            timeout=PATIENCE,
            check=False,
        )
        seen = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    evidence.keep("the terminal", lambda: seen)
    return done.returncode, seen


def keys_sent_to(server: RawServer) -> set[str | None]:
    return {request.headers.get("authorization") for request in server.requests}


async def test_without_a_terminal_a_key_does_not_leave_for_an_address_nobody_named(
    terminal, server, remembered
):
    done = await run(terminal, server)
    assert done.returncode == 2
    [line] = [each for each in done.stderr.splitlines() if each.startswith("Error: ")]
    assert f"{server.address} is to be sent the key in OUR_KEY" in line
    assert "SOCRATIC_ENDPOINTS=" in line
    assert server.connections == 0
    assert not remembered.exists()
    assert not terminal.database.exists()


async def test_what_the_setting_binds_needs_no_question(terminal, server, remembered):
    terminal.environment.update(listed(server.address, keys=["OUR_KEY"]))
    done = await run(terminal, server)
    assert done.returncode == 0, done.stderr
    assert keys_sent_to(server) == {f"Bearer {KEY}"}
    assert not remembered.exists()


async def test_the_setting_may_be_a_file(terminal, server):
    setting = listed(server.address, keys=["OUR_KEY"])["SOCRATIC_ENDPOINTS"]
    terminal.environment["SOCRATIC_ENDPOINTS"] = str(terminal.write("endpoints.json", setting))
    assert (await run(terminal, server)).returncode == 0
    assert keys_sent_to(server) == {f"Bearer {KEY}"}


async def test_a_person_is_asked_once_and_the_answer_is_remembered_without_the_key(
    terminal, server, remembered
):
    code, seen = await run_on_a_terminal(terminal, server, "y\n")
    assert code == 0
    assert f"openai-compatible/m is at {server.address}" in " ".join(seen.split())
    assert keys_sent_to(server) == {f"Bearer {KEY}"}
    assert remembered.read_text() == f"OUR_KEY {server.address}\n"
    assert stat.S_IMODE(remembered.stat().st_mode) == 0o600
    assert KEY not in seen

    terminal.database.unlink()
    asked = len(server.requests)
    again = await run(terminal, server)
    assert again.returncode == 0, again.stderr
    assert len(server.requests) == 2 * asked

    async with serving(answer) as another:
        assert (await run(terminal, another)).returncode == 2, "the key went somewhere else"
        assert another.connections == 0


async def test_a_no_is_taken_for_a_no(terminal, server, remembered):
    code, seen = await run_on_a_terminal(terminal, server, "\n")
    assert code == 2
    assert "is not to be sent the key in OUR_KEY" in " ".join(seen.split())
    assert server.connections == 0
    assert not remembered.exists()


async def test_a_list_that_others_may_write_is_not_believed(terminal, server, remembered):
    remembered.parent.mkdir(parents=True)
    remembered.write_text(f"OUR_KEY {server.address}\n")
    remembered.chmod(0o620)
    done = await run(terminal, server)
    assert (done.returncode, server.connections) == (2, 0)
    assert f"chmod 600 {remembered}" in done.stderr


async def test_an_address_that_is_sent_no_key_needs_no_question(terminal, server):
    config = CONFIG.replace(", api_key_env: OUR_KEY", "").format(address=server.address)
    done = await asyncio.to_thread(terminal.run, "run", terminal.write("b.yaml", config))
    assert done.returncode == 0, done.stderr
    assert keys_sent_to(server) == {None}


async def test_what_it_will_cost_is_told_without_a_question(terminal, server):
    terminal.environment["OUR_KEY"] = "'quoted-as-in-a-file'"
    done = await run(terminal, server, "--estimate")
    assert done.returncode == 0, done.stderr
    assert server.connections == 0
    assert "Note: model openai-compatible/m: " in done.stderr
    assert "OUR_KEY holds no valid key: it has quotation marks around it" in done.stderr
    assert "quoted-as" not in done.stderr


async def test_a_plan_names_no_environment_variable(terminal, server):
    terminal.environment.update(listed(server.address, keys=["OUR_KEY"]))
    assert (await run(terminal, server)).returncode == 0
    assert b"OUR_KEY" not in terminal.database.read_bytes()
    assert b"api_key_env" not in terminal.database.read_bytes()


@asynccontextmanager
async def openai_behind_a_proxy(folder: Path) -> AsyncIterator[tuple[str, str, RawServer]]:
    """A server that stands for OpenAI's address, behind a proxy.

    Gives the proxy's address, the certificate to trust, and the server, which records its requests.
    """
    name = "api.openai.com"
    certificate = await asyncio.to_thread(certificate_for, f"DNS:{name}", folder)
    seen = RawServer("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(f"CONNECT {name}:443 ".encode())
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            await writer.start_tls(certificate.context)
            while True:
                request = await read_request(reader)
                seen.requests.append(request)
                await answer(request, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    proxy = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with proxy:
        port = proxy.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", str(certificate.trusted), seen


async def test_a_key_goes_to_the_provider_it_is_for_without_a_question_or_a_flag(
    terminal, remembered
):
    async with openai_behind_a_proxy(terminal.folder) as (proxy, certificate, seen):
        terminal.environment.update(
            {"OPENAI_API_KEY": KEY, "https_proxy": proxy, "SSL_CERT_FILE": certificate}
        )
        config = (
            "models: [{id: openai/gpt-x, options: {stream: false}}]\n"
            "scenarios: [student-bigger-fraction]\nrepeats: 1\n"
        )
        done = await asyncio.to_thread(terminal.run, "run", terminal.write("b.yaml", config))
    assert done.returncode == 0, done.stderr
    assert keys_sent_to(seen) == {f"Bearer {KEY}"}
    assert not remembered.exists()
