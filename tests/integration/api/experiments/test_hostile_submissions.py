"""A hostile submitter: what guards `socratic-bench submit` holds over HTTP too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from socratic_api.capabilities import Capabilities
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.integration.api.experiments.conftest import CONFIG, Asking

PATH = "/api/experiments"
KEY = {"authorization": "Bearer a-key"}
SECRET = "the content of a file"


async def assert_refused(
    store: SqlStore, broker: MemoryBroker, answer: httpx.Response, place: str
) -> str:
    """The mistake at this place; nothing was stored, and nothing requested."""
    assert answer.status_code == 422, (answer.request.content, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    assert await store.outlines() == []
    assert broker.outstanding == 0
    found = {each["place"]: each["problem"] for each in answer.json()["mistakes"]}
    return next(problem for where, problem in found.items() if where.endswith(place))


async def test_a_prompt_names_no_file(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, tmp_path: Path
):
    path = tmp_path / "secret.txt"
    path.write_text(SECRET)
    prompts: list[Any] = [{"file": str(path)}, f"file:{path}", f"file://{path}"]
    for prompt in prompts:
        of_all = await services.post(PATH, json={**CONFIG, "system_prompt": prompt})
        of_one = {"models": [{"id": "reference/socratic", "system_prompt": prompt}]}
        of_one_answer = await services.post(PATH, json=of_one)

        assert "file" in await assert_refused(store, broker, of_all, "system_prompt")
        await assert_refused(store, broker, of_one_answer, "models[0].system_prompt")


async def test_a_model_replays_no_recording(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, tmp_path: Path
):
    path = tmp_path / "secret.jsonl"
    path.write_text(SECRET)
    for name in ("secret.jsonl", "../secret.jsonl", "/etc/passwd", path):
        answer = await services.post(PATH, json={"models": [f"replay/{name}"]})
        problem = await assert_refused(store, broker, answer, "models[0]")
        assert "recording" in problem, name


async def test_scenarios_come_from_no_file(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker, tmp_path: Path
):
    path = tmp_path / "secret.yaml"
    path.write_text(f"scenarios: [{{id: a, dimension: b, prompt: {SECRET}}}]")
    for name in (str(path), "secret.yaml", "/etc/hosts.yaml"):
        answer = await services.post(PATH, json={**CONFIG, "scenarios": name})
        assert "file" in await assert_refused(store, broker, answer, "scenarios"), name


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


async def test_a_key_is_never_repeated_nor_one_of_the_services_named(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    for variable in ("AWS_SECRET_ACCESS_KEY", "SOCRATIC_API_KEYS", "sk-1234"):
        model = {"id": "openai/a", "options": {"api_key_env": variable}}
        answer = await services.post(PATH, json={"models": [model]})
        await assert_refused(store, broker, answer, "models[0]")
        assert variable not in answer.text


async def test_an_address_of_the_cloud_s_metadata_is_refused(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    metadata = ("http://169.254.169.254/latest", "http://[fd00:ec2::254]/")
    for address in (*metadata, "file:///etc/passwd"):
        model = {"id": "openai-compatible/a", "base_url": address}
        answer = await services.post(PATH, json={"models": [model]})
        await assert_refused(store, broker, answer, "models[0]")


async def test_a_body_that_is_no_configuration_is_told_where(
    services: httpx.AsyncClient, store: SqlStore
):
    for body, problem in (
        (b"models: [reference/socratic]", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "must be a JSON object"),
        (b'{"models": ["reference/socratic"]', "not valid JSON"),
        (b'{"models": ' + b"[" * 100 + b"]" * 100 + b"}", "levels deep"),
        (b'{"models": ["reference/socratic"], "repeats": 1' + b"0" * 5000 + b"}", "digits"),
        (b'{"models": ["reference/socratic"], "name": "\\u0000"}', "U+0000"),
    ):
        answer = await services.post(
            PATH, content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 422, body[:50]
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


async def test_writing_takes_a_key_and_no_page_of_another_site_writes(
    asking: Asking, broker: MemoryBroker
):
    headers: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"authorization": "Bearer other"}, 401),
        ({**KEY, "origin": "https://evil.example.com"}, 403),
        ({**KEY, "host": "evil.test"}, 421),
    ]
    async with asking(Capabilities(broker), host="0.0.0.0", api_keys=("a-key",)) as client:
        for method, path in (
            ("POST", PATH),
            ("PATCH", f"{PATH}/exp-1"),
            ("DELETE", f"{PATH}/exp-1"),
            ("POST", "/api/dead-letters/redrive"),
        ):
            for given, status in headers:
                answer = await client.request(method, path, json=CONFIG, headers=given)
                assert answer.status_code == status, (method, path, given)
    assert broker.outstanding == 0
