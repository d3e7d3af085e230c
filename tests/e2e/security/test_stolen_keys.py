"""Hostile plans try to get the secrets in a runner's environment.

The test stores the plans directly, past all checks of the command, as anybody with the store's
address could. An attacker's server records every byte that it receives.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

import asyncpg
import pytest
from pydantic import JsonValue

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from tests.e2e.service_processes import ServiceProcess, all_ready
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.raw_server import (
    STREAM_HEAD,
    RawServer,
    Request,
    chunk,
    completion,
    response,
    serving,
)
from tests.waiting import until

pytestmark = pytest.mark.connected

NOT_STREAMED: dict[str, JsonValue] = {"stream": False}
PASSWORD = "st0re-pa55word-planted-01"
BOUND = "sk-bound-to-the-listed-planted-02"
WRITTEN = "sk-written-into-the-list-planted-03"
PLANTED = {
    "OPENAI_API_KEY": "sk-openai-planted-04",
    "ANTHROPIC_API_KEY": "sk-ant-planted-05",
    "GEMINI_API_KEY": "gemini-planted-0006",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED07",
    "AWS_SECRET_ACCESS_KEY": "aws/secret+planted/08",
    "AWS_SESSION_TOKEN": "aws//session==planted-09",
    "AWS_BEARER_TOKEN_BEDROCK": "bedrock-bearer-planted-10",
    "GITHUB_TOKEN": "ghp_planted_000000000011",
    "LISTED_KEY": BOUND,
}
SCENARIO = Scenario(id="s", dimension="student", prompt="Why?")
PRIVATE = "a-private-line-planted-12"
FAR = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"}


@dataclass
class Attacker:
    """A server that accepts everything, and answers in the way that helps an attack."""

    address: str = ""
    received: bytearray = field(default_factory=bytearray)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while data := await reader.read(65_536):
                self.received += data
                writer.write(response("401 No", b'{"error": "Which key did you say?"}'))
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def attacking() -> AsyncIterator[Attacker]:
    attacker = Attacker()
    server = await asyncio.start_server(attacker.serve, "127.0.0.1", 0)
    attacker.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield attacker


def spelled(secret: str) -> list[bytes]:
    """The forms of a secret on its way."""
    forms = {secret, secret.upper(), secret.lower(), quote(secret, safe=""), secret.encode().hex()}
    return [form.encode() for form in forms] + [b64encode(secret.encode()).rstrip(b"=")[:-1]]


def stolen(text: bytes | str, *, but: Sequence[str] = ()) -> list[str]:
    """The planted secrets that are in a text, by their values."""
    data = text.encode() if isinstance(text, str) else bytes(text)
    every = {*PLANTED.values(), PASSWORD, WRITTEN, PRIVATE} - set(but)
    return sorted(each for each in every if any(form in data for form in spelled(each)))


@dataclass
class Stack:
    """A runner with its store and broker, to which a hostile submitter has access."""

    runner: ServiceProcess
    database: str
    broker_url: str

    async def carry_out(self, *models: TutorModel) -> dict[str, tuple[str, str]]:
        """Plan these models as an attacker does; how the run of each ended: class and message."""
        manifest = Manifest(models=models, scenarios=(SCENARIO,), repeats=1)
        experiment = Experiment(manifest=manifest, created_at=datetime.now(UTC))
        store, broker = open_store(self.database), open_broker(self.broker_url)
        try:
            await store.register(experiment)
            await broker.declare(WORK_QUEUES, BROADCASTS)
            now = datetime.now(UTC)
            requests = [
                RunRequested.of(run, source="attacker", time=now) for run in experiment.runs()
            ]
            await broker.publish([to_message(request) for request in requests])
            by_id = {run.run_id: run.model_id for run in experiment.runs()}

            async def ended() -> dict[str, tuple[str, str]]:
                failures = await store.recorded_failures(list(by_id))
                responses = await store.responses(list(by_id))
                ends = {
                    by_id[id_]: (it.failure.kind, it.failure.message)
                    for id_, it in failures.items()
                }
                answers = {by_id[id_]: ("ok", each[0].text) for id_, each in responses.items()}
                return {**ends, **answers}

            return await until(ended, lambda it: len(it) == len(by_id), "the end of all runs")
        finally:
            await broker.close()
            await store.close()

    async def everything_stored(self) -> str:
        connection = await asyncpg.connect(self.database)
        try:
            tables = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            )
            rows = [
                row
                for (table,) in tables
                for (row,) in await connection.fetch(f'SELECT t::text FROM "{table}" t')
            ]
        finally:
            await connection.close()
        return "\n".join(rows)


def with_password(database: str) -> str:
    """The address of the store with a password in it; the server here trusts everybody."""
    scheme, _, rest = database.partition("://")
    user, _, where = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0] or 'postgres'}:{PASSWORD}@{where}"


@asynccontextmanager
async def stack(tmp_path, endpoints: dict[str, object]) -> AsyncIterator[Stack]:
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as database:
        environment = {
            "SOCRATIC_BROKER_URL": broker,
            "SOCRATIC_STORE_URL": with_password(database),
            "SOCRATIC_ENDPOINTS": json.dumps(endpoints),
            "SOCRATIC_RUNNER_FOLDER": str(tmp_path / "recordings"),
            "SOCRATIC_RUNNER_FIRST_DELAY": "0.01",
            "SOCRATIC_RUNNER_PATIENT_ATTEMPTS": "2",
            "SOCRATIC_RUNNER_ATTEMPTS": "2",
            "SOCRATIC_LOG_LEVEL": "debug",
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
            **FAR,
            **PLANTED,
        }
        async with all_ready(environment, "runner") as services:
            yield Stack(services["runner"], database, broker)


@pytest.fixture
def recordings(tmp_path):
    """A folder of recordings for the runner, next to a private file."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    (tmp_path / "private.jsonl").write_text(json.dumps({"scenario_id": "s", "text": PRIVATE}))
    (folder / "link.jsonl").symlink_to(tmp_path / "private.jsonl")
    return folder


async def test_a_plan_gets_nothing_of_the_runners_environment(tmp_path, recordings):
    async with attacking() as attacker, stack(tmp_path, {}) as services:
        there = attacker.address
        ended = await services.carry_out(
            *(
                TutorModel(
                    id=f"openai-compatible/{variable}",
                    base_url=f"{there}/v1",
                    options={"api_key_env": variable},
                )
                for variable in (*PLANTED, "SOCRATIC_STORE_URL", "SOCRATIC_ENDPOINTS")
            ),
            TutorModel(id="openai/other", base_url=f"{there}/v1"),
            TutorModel(id="openai/named", base_url=f"{there}/v1", endpoint="openai"),
            TutorModel(id="openai/variable", options={"api_key_env": "GITHUB_TOKEN"}),
            TutorModel(id="anthropic/other", base_url=there),
            TutorModel(id="anthropic/variable", base_url=there, options={"api_key_env": "HOME"}),
            TutorModel(id="vllm/none", base_url=there),
            TutorModel(id="bedrock/streamed", base_url=there),
            TutorModel(id="bedrock/whole", base_url=there, options={"stream": False}),
            TutorModel(id="bedrock/region", options={"region": f"x@{there[7:]}/?"}),
            TutorModel(id="ollama/on-this-machine"),
            TutorModel(id="openai/user", base_url=f"https://api.openai.com@{there[7:]}/v1"),
            TutorModel(id="openai/metadata", base_url="http://169.254.169.254/latest/meta-data"),
            TutorModel(id="openai/mapped", base_url="http://[::ffff:a9fe:a9fe]/latest/meta-data"),
            TutorModel(id="replay/../private.jsonl"),
            TutorModel(id=f"replay/{tmp_path}/private.jsonl"),
            TutorModel(id="replay//proc/self/environ"),
            TutorModel(id="replay/link.jsonl"),
            TutorModel(id="replay/missing.jsonl"),
        )
        services.runner.terminate()
        assert await services.runner.ended() == 0
        stored = await services.everything_stored()
    assert (attacker.connections, bytes(attacker.received)) == (0, b"")
    assert {kind for kind, _ in ended.values()} == {"bad_request"}
    assert stolen(stored) == []
    assert stolen(services.runner.text) == []
    assert "SOCRATIC_ENDPOINTS" in ended["openai/other"][1]
    assert "SOCRATIC_ENDPOINTS" in ended["bedrock/whole"][1]
    assert "SOCRATIC_ENDPOINTS" in ended["openai-compatible/OPENAI_API_KEY"][1]
    of_files = {
        message.replace(name, "NAME")
        for name, (_, message) in ended.items()
        if name.startswith("replay/")
    }
    assert len(of_files) == 1, "an absent file can be told from a forbidden one"


async def test_a_listed_server_that_turned_bad_passes_nothing_on(tmp_path, recordings):
    """The operator has listed it: it knows the one key that it is sent, and no other."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        body = json.loads(request.body) if request.body else {}
        every = json.dumps(request.headers)
        match str(body.get("model")):
            case "redirecting":
                writer.write(response("307 There", b"", f"Location: {attacker.address}/v1"))
            case "telling":
                error = {"error": {"message": every, "code": every, "type": every}}
                writer.write(response("400 No", json.dumps(error).encode()))
            case "repeating":
                writer.write(
                    response("200 OK", completion(every), "Content-Type: application/json")
                )
            case "streaming":
                pieces = [every[at : at + 7] for at in range(0, len(every), 7)]
                writer.write(STREAM_HEAD + b"".join(map(chunk, pieces)) + chunk("", "stop"))
                writer.write(b"data: [DONE]\n\n")
                writer.close()
            case _:  # Bedrock, whose model is in the path
                away = f"Location: {attacker.address}/"
                head, said = ("307 There", b"") if "redirect" in request.line else ("400 No", b"")
                writer.write(response(head, said or json.dumps({"message": every}).encode(), away))

    async with attacking() as attacker, serving(answer) as bad, serving(answer) as written:
        endpoints = {
            "bad": {"origin": bad.address, "key_variable": "LISTED_KEY"},
            "written": {"origin": written.address, "secret": WRITTEN},
            "aws": {"origin": bad.address, "aws": True},
        }
        async with stack(tmp_path, endpoints) as services:
            ended = await services.carry_out(
                *(
                    TutorModel(id=f"{kind}/{name}", base_url=f"{where}/v1", options=options)
                    for kind, where in (("openai", bad.address), ("vllm", written.address))
                    for name, options in (
                        ("redirecting", {}),
                        ("telling", {}),
                        ("repeating", NOT_STREAMED),
                        ("streaming", {}),
                    )
                ),
                TutorModel(id="xai/named", base_url=written.address, endpoint="bad"),
                TutorModel(id="bedrock/redirect", base_url=bad.address, options={"stream": False}),
                TutorModel(id="bedrock/redirect-stream", base_url=bad.address),
                TutorModel(id="bedrock/telling", base_url=bad.address),
            )
            services.runner.terminate()
            assert await services.runner.ended() == 0
            stored = await services.everything_stored()
    assert (attacker.connections, bytes(attacker.received)) == (0, b"")
    assert stolen(sent_to(written), but=[WRITTEN]) == []
    # A signature names the key that made it, and a session shows its token; no other secret goes.
    signed = [PLANTED["AWS_ACCESS_KEY_ID"], PLANTED["AWS_SESSION_TOKEN"]]
    assert stolen(sent_to(bad), but=[BOUND, *signed]) == []
    assert BOUND in sent_to(bad), "the key that is bound to it was not sent"
    assert WRITTEN in sent_to(written), "the key that is bound to it was not sent"
    assert stolen(stored) == []
    assert stolen(services.runner.text) == []
    assert ended["openai/repeating"][0] == ended["vllm/streaming"][0] == "ok"
    assert "[hidden]" in ended["openai/repeating"][1]
    assert "[hidden]" in ended["vllm/streaming"][1]
    for name in ("openai/redirecting", "bedrock/redirect", "bedrock/redirect-stream", "xai/named"):
        assert ended[name][0] == "bad_request"
    assert all(len(message) < 400 for kind, message in ended.values() if kind != "ok")


def sent_to(server: RawServer) -> str:
    return "".join(
        f"{each.line}\n{json.dumps(each.headers)}\n{each.body!r}\n" for each in server.requests
    )
