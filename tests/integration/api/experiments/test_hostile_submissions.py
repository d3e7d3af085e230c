"""A hostile submitter: what guards `socratic-bench submit` holds over HTTP too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from socratic_api.control.capabilities import Capabilities
from socratic_bench.adapters.memory.broker import MemoryBroker
from socratic_bench.adapters.sql.store import SqlStore
from tests.integration.api.experiments.conftest import CONFIG, Asking

PATH = "/api/experiments"
KEY = {"authorization": "Bearer a-key"}
SECRET = "the content of a file"


async def assert_refused(
    store: SqlStore, broker: MemoryBroker, answer: httpx.Response, place: str
) -> str:
    """The mistake at this place; nothing was stored, and nothing requested."""
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    assert await store.outlines() == []
    assert broker.outstanding == 0
    found = {each["place"]: each["problem"] for each in answer.json()["mistakes"]}
    return next(problem for where, problem in found.items() if where.endswith(place))


@pytest.mark.parametrize("written", [{"file": "{path}"}, "file:{path}", "file://{path}"])
async def test_a_prompt_names_no_file(
    services: httpx.AsyncClient,
    store: SqlStore,
    broker: MemoryBroker,
    tmp_path: Path,
    written: Any,
):
    (tmp_path / "secret.txt").write_text(SECRET)
    prompt = json.loads(json.dumps(written).replace("{path}", str(tmp_path / "secret.txt")))

    of_all = await services.post(PATH, json={**CONFIG, "system_prompt": prompt})
    of_one = {"models": [{"id": "reference/socratic", "system_prompt": prompt}]}
    of_one_answer = await services.post(PATH, json=of_one)

    assert "file" in await assert_refused(store, broker, of_all, "system_prompt")
    await assert_refused(store, broker, of_one_answer, "models[0].system_prompt")


@pytest.mark.parametrize("name", ["secret.jsonl", "../secret.jsonl", "/etc/passwd", "{path}"])
async def test_a_model_replays_no_recording(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, tmp_path: Path, name: str
):
    (tmp_path / "secret.jsonl").write_text(SECRET)
    model = "replay/" + name.replace("{path}", str(tmp_path / "secret.jsonl"))

    answer = await services.post(PATH, json={"models": [model]})

    problem = await assert_refused(store, broker, answer, "models[0]")
    assert "recording" in problem


@pytest.mark.parametrize("name", ["{path}", "secret.yaml", "/etc/hosts.yaml"])
async def test_scenarios_come_from_no_file(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, tmp_path: Path, name: str
):
    (tmp_path / "secret.yaml").write_text(f"scenarios: [{{id: a, dimension: b, prompt: {SECRET}}}]")
    given = name.replace("{path}", str(tmp_path / "secret.yaml"))

    answer = await services.post(PATH, json={**CONFIG, "scenarios": given})

    assert "file" in await assert_refused(store, broker, answer, "scenarios")


async def test_the_variable_of_a_key_reaches_neither_plan_nor_queue(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    model = {
        "id": "openai-compatible/a",
        "base_url": "https://llm.example.org/v1",
        "options": {"api_key_env": "MY_LLM_KEY"},
    }

    answer = await services.post(PATH, json={"models": [model]})

    assert answer.status_code == 202, answer.text
    stored = await store.experiment(answer.json()["experiment_id"])
    assert stored is not None
    assert "MY_LLM_KEY" not in stored.model_dump_json()
    [note] = answer.json()["notes"]
    assert "SOCRATIC_ENDPOINTS" in note, "the runner's operator decides about the address"


@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "SOCRATIC_API_KEYS", "sk-1234"])
async def test_a_key_is_never_repeated_nor_one_of_the_services_named(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, variable: str
):
    options = {"api_key_env": variable}

    answer = await services.post(PATH, json={"models": [{"id": "openai/a", "options": options}]})

    await assert_refused(store, broker, answer, "models[0]")
    assert variable not in answer.text


@pytest.mark.parametrize(
    "address", ["http://169.254.169.254/latest", "http://[fd00:ec2::254]/", "file:///etc/passwd"]
)
async def test_an_address_of_the_cloud_s_metadata_is_refused(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, address: str
):
    model = {"id": "openai-compatible/a", "base_url": address}

    await assert_refused(
        store, broker, await services.post(PATH, json={"models": [model]}), "models[0]"
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"models: [reference/socratic]", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "must be a JSON object"),
        (b'{"models": ["reference/socratic"]', "not valid JSON"),
        (b'{"models": ' + b"[" * 100 + b"]" * 100 + b"}", "levels deep"),
        (b'{"models": ["reference/socratic"], "repeats": 1' + b"0" * 5000 + b"}", "digits"),
        (b'{"models": ["reference/socratic"], "name": "\\u0000"}', "U+0000"),
    ],
)
async def test_a_body_that_is_no_configuration_is_told_where(
    services: httpx.AsyncClient, store: SqlStore, body: bytes, problem: str
):
    answer = await services.post(PATH, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
    assert problem in answer.text
    assert await store.outlines() == []


async def test_a_body_too_large_or_of_another_type_is_refused_unread(services: httpx.AsyncClient):
    large = json.dumps({**CONFIG, "notes": "a" * 1_000_000})
    typed = await services.post(PATH, content=large, headers={"content-type": "application/json"})
    form = await services.post(
        PATH, content=json.dumps(CONFIG), headers={"content-type": "text/plain"}
    )

    assert typed.status_code == 413
    assert form.status_code == 415


async def test_a_report_of_mistakes_is_bounded(services: httpx.AsyncClient):
    wrong = {
        "models": [{"id": "nobody/" + "x" * 50, f"field{each}": "y" * 50} for each in range(5_000)]
    }

    answer = await services.post(PATH, json=wrong)

    assert answer.status_code == 422
    assert len(answer.json()["mistakes"]) <= 1_001
    assert len(answer.content) < 1_000_000


async def test_more_runs_than_a_request_may_ask_for_are_refused(
    services: httpx.AsyncClient, store: SqlStore
):
    answer = await services.post(PATH, json={**CONFIG, "repeats": 100_000})

    assert answer.status_code == 422
    assert "1,500,000 runs" in answer.json()["detail"]
    assert await store.outlines() == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", PATH),
        ("PATCH", f"{PATH}/exp-1"),
        ("DELETE", f"{PATH}/exp-1"),
        ("POST", "/api/dead-letters/redrive"),
    ],
)
async def test_writing_takes_a_key_and_no_page_of_another_site_writes(
    asking: Asking, broker: MemoryBroker, method: str, path: str
):
    async with asking(Capabilities(broker), host="0.0.0.0", api_keys=("a-key",)) as client:
        without = await client.request(method, path, json=CONFIG)
        wrong = await client.request(
            method, path, json=CONFIG, headers={"authorization": "Bearer other"}
        )
        elsewhere = await client.request(
            method,
            path,
            json=CONFIG,
            headers={**KEY, "origin": "https://evil.example.com"},
        )
        rebound = await client.request(
            method,
            path,
            json=CONFIG,
            headers={"authorization": "Bearer a-key", "host": "evil.test"},
        )

    assert [without.status_code, wrong.status_code] == [401, 401]
    assert elsewhere.status_code == 403
    assert rebound.status_code == 421
    assert broker.outstanding == 0
