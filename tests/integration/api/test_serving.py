"""The API on a real socket: it starts, answers, and stops cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from socratic_api.entrypoints.container import serve
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import InvalidSettings
from tests.waiting import PATIENCE, waiting_for


async def test_it_says_where_it_listens_answers_there_and_stops_when_cancelled(store: SqlStore):
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(store, "127.0.0.1", 0, ready.set_result))
    async with waiting_for("an answer, and the end of the server"):
        address = await ready
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            answer = await client.get("/api/model-comparison")
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    assert answer.json()["models"] == []
    assert await store.revision()  # the store stays its owner's
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            await client.get(address)


async def test_a_port_in_use_is_one_sentence(store: SqlStore):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidSettings, match=f"127.0.0.1:{port}: another program listens"):
            await serve(store, "127.0.0.1", port, lambda _address: None)


async def test_small_packets_are_sent_at_once(store: SqlStore, monkeypatch: pytest.MonkeyPatch):
    made, undelayed = HttpToolsProtocol.connection_made, []

    def noted(self: HttpToolsProtocol, transport: asyncio.Transport) -> None:
        accepted = transport.get_extra_info("socket")
        undelayed.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(HttpToolsProtocol, "connection_made", noted)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(store, "127.0.0.1", 0, ready.set_result))
    async with (
        waiting_for("an answer"),
        httpx.AsyncClient(base_url=await ready, timeout=PATIENCE) as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    assert undelayed == [1]  # else a body waits 40 ms for the acknowledgement of its head


SMUGGLED = (
    "POST /api/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    "GET /api/model-comparison HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
)
"""Whether its second request is one depends on which of the two headers one believes."""


async def test_no_request_is_smuggled_in_by_a_body_with_two_lengths(store: SqlStore):
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(store, "127.0.0.1", 0, ready.set_result))
    async with waiting_for("the end of the connection"):
        port = int((await ready).rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(SMUGGLED.encode())
        answers = (await reader.read()).decode()
        writer.close()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    assert answers.startswith("HTTP/1.1 400 ")
    assert answers.count("HTTP/1.1 ") == 1


async def test_a_host_of_another_machine_is_one_sentence(store: SqlStore):
    settings = ApiSettings(api_keys=(SecretStr("a-key"),))
    with pytest.raises(InvalidSettings, match=r"203\.0\.113\.1:8000"):
        await serve(store, "203.0.113.1", 8000, lambda _address: None, settings)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.1"])
async def test_other_machines_are_let_in_with_keys_alone(store: SqlStore, host: str):
    with pytest.raises(InvalidSettings, match="SOCRATIC_API_KEYS"):
        await serve(store, host, 0, lambda _address: None)


async def api_process(**settings: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "socratic_api",
        env={**os.environ, **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_process_ends_with_0_when_it_is_told_to_stop(tmp_path: Path):
    process = await api_process(
        SOCRATIC_STORE_URL=f"sqlite:///{tmp_path}/benchmark.db", SOCRATIC_PORT="0"
    )
    assert process.stderr is not None
    async with waiting_for("the end of the process"):
        serving = await process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        code = await process.wait()

    assert b'"event": "serving"' in serving
    assert code == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SOCRATIC_PORT": "http"}, "SOCRATIC_PORT"),
        ({"SOCRATIC_HOST": "0.0.0.0"}, "SOCRATIC_API_KEYS"),
        ({"SOCRATIC_STORE_URL": "ftp://user:secret@host/x"}, "sqlite:///"),
    ],
)
async def test_the_process_ends_with_2_and_one_sentence_over_a_wrong_setting(
    settings: dict[str, str], said: str
):
    process = await api_process(**settings)
    async with waiting_for("the end of the process"):
        _, stderr = await process.communicate()

    assert process.returncode == 2
    assert said in stderr.decode()
    assert "secret" not in stderr.decode()
    assert len(stderr.decode().strip().splitlines()) == 1
