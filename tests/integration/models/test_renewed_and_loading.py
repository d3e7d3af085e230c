"""A key in a file that somebody renews, and a server nearby that loads its model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.errors import FailureKind
from socratic_bench.providers.endpoints import KeySource
from socratic_bench.providers.spec import Destination
from socratic_bench.testing.samples import a_question
from socratic_runner.models.access import Access
from socratic_runner.models.http.client import LOADING_SECONDS, HttpClient
from socratic_runner.models.openai.chat_completions import open_client
from tests.integration.models.conftest import failure_of
from tests.servers.providers.raw_server import Request, completion, response, serving

JSON = "Content-Type: application/json"


def client_at(address: str, key: KeySource | None = None, limits: Limits | None = None):
    model = TutorModel(
        id="openai-compatible/m", options={"stream": False}, limits=limits or Limits()
    )
    return open_client(model, Access(None, Destination(f"{address}/v1", own=False), key))


async def test_a_renewed_file_of_a_key_is_read_where_the_old_key_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "key"
    file.write_text("sk-old-key-of-a-test")
    monkeypatch.setenv("A_KEY_FILE", str(file))
    accepted = "sk-old-key-of-a-test"

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        is_right = request.headers["authorization"] == f"Bearer {accepted}"
        refusal = response("401 No", b'{"error": {"message": "token expired"}}', JSON)
        writer.write(response("200 OK", completion("Why?"), JSON) if is_right else refusal)

    async with serving(answer) as server:
        client = client_at(server.address, KeySource(variable="A_KEY"))
        await client.ask(a_question())
        accepted = "sk-new-key-of-a-test"
        assert (await failure_of(client)).kind is FailureKind.AUTH
        file.write_text(accepted)
        assert (await client.ask(a_question())).text == "Why?"
        assert len(server.requests) == 4
        await client.close()


async def test_the_first_call_to_a_server_nearby_may_load_its_model():
    async def answer(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", completion("Why?"), JSON))

    async with serving(answer) as server:
        client = client_at(server.address)
        assert isinstance(client, HttpClient)
        assert client.loading_seconds == LOADING_SECONDS
        await client.ask(a_question())
        assert client.loading_seconds is None
        await client.close()


@pytest.mark.parametrize(
    ("address", "limits"),
    [
        ("https://llm.example.org", Limits()),
        ("http://127.0.0.1:1", Limits(timeout_seconds=5)),
        ("http://127.0.0.1:1", Limits(first_byte_timeout_seconds=5)),
    ],
)
def test_a_service_and_chosen_limits_get_no_longer_first_call(address: str, limits: Limits):
    client = client_at(address, limits=limits)
    assert isinstance(client, HttpClient)
    assert client.loading_seconds is None
