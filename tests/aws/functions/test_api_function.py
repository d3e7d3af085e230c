"""The API as its package: requests of an HTTP API in, answers with status, headers and body out."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.session import get_session

from socratic_bench.consuming.queues import (
    BROADCASTS,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.ports.broker import WorkQueue
from socratic_bench.results.export.formats import FORMATS, file_pieces
from socratic_bench.results.export.tables import TABLES, open_table
from socratic_bench.results.transcripts import chosen_runs
from socratic_bench.scoring.score import score
from tests.aws.lambda_runtime import FunctionFailed, Runtime, running
from tests.aws.place import Place, a_place
from tests.contract.store.facts import a_response, a_score, an_experiment, record_unleased
from tests.servers import aws_emulator

HANDLER = "socratic_api.entrypoints.lambda_function.handler"
KEY = "a-key-for-tests-of-forty-characters-long"
RELEASE = "0.1.0-test"
COMPARISON = "/api/model-comparison"
JSON = {"content-type": "application/json"}


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_place(WORK_QUEUES, BROADCASTS) as place:
        experiment = an_experiment(models=3, scenarios=5, repeats=1)
        await place.store.register(experiment)
        await place.store.fold([a_score(run) for run in experiment.runs()], [])
        yield place


def client_of(service: str) -> Any:
    return get_session().create_client(
        service,
        endpoint_url=aws_emulator.SERVER.address(),
        region_name=aws_emulator.REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@pytest.fixture
def parameter() -> Iterator[str]:
    """The name of a parameter with the key."""
    client = client_of("ssm")
    name = f"/test-{uuid4().hex}/api-keys"
    client.put_parameter(Name=name, Value=KEY, Type="SecureString")
    yield name
    client.delete_parameter(Name=name)


@pytest.fixture
def bucket() -> Iterator[str]:
    """The name of a bucket."""
    client, name = client_of("s3"), f"test-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    yield name
    for each in client.list_objects_v2(Bucket=name).get("Contents", []):
        client.delete_object(Bucket=name, Key=each["Key"])
    client.delete_bucket(Bucket=name)


@pytest.fixture
def api(
    packages: Path, tmp_path: Path, place: Place, parameter: str, bucket: str
) -> Iterator[Runtime]:
    environment = {
        **place.environment,
        "SOCRATIC_STORE_URL": f"{place.store_url}&bucket={bucket}",
        "SOCRATIC_API_KEYS_PARAMETER": parameter,
        "SOCRATIC_RELEASE": RELEASE,
    }
    with running(packages, "api", HANDLER, tmp_path, environment) as runtime:
        yield runtime


def request(
    path: str, *, method: str = "GET", query: str = "", body: bytes | str | None = None, **more: Any
) -> dict[str, Any]:
    """An event of version 2.0, as an HTTP API makes it: bytes come as base64."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"host": "abc.execute-api.us-east-1.amazonaws.com", **more},
        "requestContext": {
            "domainName": "abc.execute-api.us-east-1.amazonaws.com",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "1.2.3.4"},
            "stage": "$default",
        },
        "isBase64Encoded": isinstance(body, bytes),
    }
    if body is not None:
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return event


def content(answer: dict[str, Any]) -> bytes:
    body: str = answer["body"]
    return base64.b64decode(body) if answer["isBase64Encoded"] else body.encode()


async def take(place: Place, queue: WorkQueue, count: int, rejects: int = 0) -> None:
    """Take so many events from a queue, and dead-letter the first of them."""
    async with place.broker.consume(queue.name, prefetch=100) as consumer:
        while count > 0:
            deliveries = [*await consumer.receive(count)]
            count -= len(deliveries)
            for each in deliveries[:rejects]:
                await consumer.reject(each, "poison")
            await consumer.ack(deliveries[rejects:])
            rejects = 0


def test_a_page_is_text_with_a_fingerprint_and_only_sent_when_it_changed(api: Runtime) -> None:
    answer = api.invoke(request(COMPARISON))
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, False)
    assert answer["headers"]["content-type"].startswith("application/json")
    assert answer["headers"]["x-socratic-release"] == RELEASE
    assert int(answer["headers"]["content-length"]) == len(content(answer))
    assert len(json.loads(answer["body"])["models"]) == 3
    again = api.invoke(request(COMPARISON, **{"if-none-match": answer["headers"]["etag"]}))
    assert (again["statusCode"], again["body"]) == (304, "")
    assert again["headers"]["etag"] == answer["headers"]["etag"]


def test_a_compressed_answer_is_base64_of_the_same_page(api: Runtime) -> None:
    plain = api.invoke(request(COMPARISON))
    answer = api.invoke(request(COMPARISON, **{"accept-encoding": "gzip, br"}))
    assert answer["isBase64Encoded"] is True
    assert answer["headers"]["content-encoding"] == "gzip"
    assert gzip.decompress(content(answer)) == content(plain)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "base64"])
def test_a_text_is_scored_for_a_key_alone(api: Runtime, *, as_bytes: bool) -> None:
    text = "Perhaps. What might you consider — «und warum»?"
    sent = json.dumps({"text": text}, ensure_ascii=False)
    body = sent.encode() if as_bytes else sent
    asked = request("/api/score", method="POST", body=body, **JSON)
    assert api.invoke(asked)["statusCode"] == 401
    asked["headers"]["authorization"] = f"Bearer {KEY}"
    answer = api.invoke(asked)
    assert answer["statusCode"] == 200
    assert json.loads(content(answer)) == score(text).as_dict()


async def test_an_experiment_is_submitted_changed_and_deleted(api: Runtime, place: Place) -> None:
    def asked(path: str, method: str, body: Any = None) -> tuple[int, Any]:
        sent = None if body is None else json.dumps(body)
        key = {"authorization": f"Bearer {KEY}"}
        event = request(path, method=method, body=sent, **JSON, **key)
        if method != "GET":
            del event["headers"]["authorization"]
            assert api.invoke(event)["statusCode"] == 401
            event["headers"] |= key
        answer = api.invoke(event)
        return answer["statusCode"], json.loads(content(answer))

    config = {"models": ["reference/socratic"], "repeats": 2}
    status, told = asked("/api/experiments", "POST", config)
    assert (status, told["planned"], told["requested"]) == (202, 30, 30)
    path = f"/api/experiments/{told['experiment_id']}"
    await take(place, RUNNER_RUN_REQUESTED, 30)
    assert asked("/api/experiments", "POST", config)[1]["experiment_id"] == told["experiment_id"]
    for state in ("paused", "resumed", "cancelled"):
        assert asked(path, "PATCH", {"state": state})[1]["state"] == state
    status, deleted = asked(path, "DELETE")
    assert (status, deleted["rows_left"]) == (200, False)
    assert asked(path, "GET")[0] == 404


async def test_answers_that_were_paid_for_are_taken_over_before_anything_is_requested(
    api: Runtime, place: Place
) -> None:
    config = {"models": ["reference/socratic"], "occasion": "2026-W48"}
    key = {"authorization": f"Bearer {KEY}"}
    submitted = []
    for repeats in (1, 2):
        body = json.dumps({**config, "repeats": repeats})
        answer = api.invoke(request("/api/experiments", method="POST", body=body, **JSON, **key))
        submitted.append(json.loads(content(answer)))
        if repeats == 1:
            experiment = await place.store.experiment(submitted[0]["experiment_id"])
            assert experiment is not None
            recently = {"recorded_at": datetime.now(UTC)}
            responses = [a_response(run).model_copy(update=recently) for run in experiment.runs()]
            await record_unleased(place.store, responses)

    told = submitted[1]
    assert [told[each] for each in ("planned", "reused", "answered", "requested")] == [
        30,
        15,
        15,
        15,
    ]


async def test_responses_are_rescored_and_dead_letters_put_back(api: Runtime, place: Place) -> None:
    key = {"authorization": f"Bearer {KEY}"}
    experiment = an_experiment(models=1, scenarios=5, repeats=1, occasion="rescored")
    await place.store.register(experiment)
    await record_unleased(place.store, [a_response(run) for run in experiment.runs()])
    path = f"/api/experiments/{experiment.experiment_id}/rescore"
    body = json.dumps({"profile": "socratic-v2"})
    answer = api.invoke(request(path, method="POST", body=body, **JSON, **key))
    assert json.loads(content(answer))["responses"] == 5
    queue = JUDGE_RESPONSE_RECORDED.name
    await take(place, JUDGE_RESPONSE_RECORDED, 5, rejects=1)

    listed = json.loads(content(api.invoke(request("/api/dead-letters"))))["queues"]
    waiting = {each["queue"]: each["waiting"] for each in listed}
    assert waiting.pop(queue) == 1
    assert set(waiting.values()) == {0}
    again = request("/api/dead-letters/redrive", method="POST", body="{}", **JSON, **key)
    assert json.loads(content(api.invoke(again)))["put_back"][queue] == 1


def test_it_says_what_it_can_do(api: Runtime) -> None:
    answer = api.invoke(request("/api/capabilities"))
    assert json.loads(content(answer)) == {
        "starts": True,
        "changes": True,
        "streams": False,
        "needs_key": True,
    }


def test_wrong_requests_get_the_status_of_a_problem(api: Runtime) -> None:
    authorized = {**JSON, "authorization": f"Bearer {KEY}"}
    refused = {
        404: request("/api/nothing"),
        405: request(COMPARISON, method="DELETE", **authorized),
        415: request("/api/score", method="POST", body="{}", authorization=f"Bearer {KEY}"),
        422: request("/api/score", method="POST", body="{}", **authorized),
    }
    answers = {status: api.invoke(asked) for status, asked in refused.items()}
    assert {status: each["statusCode"] for status, each in answers.items()} == {
        status: status for status in refused
    }
    assert api.invoke(request(COMPARISON))["statusCode"] == 200


async def test_an_export_is_whole_or_names_the_command_that_writes_it(
    api: Runtime, place: Place
) -> None:
    """6 MB of answers, more than a function may give without compression."""
    experiment = an_experiment(models=1, scenarios=5, repeats=12, occasion="exported")
    await place.store.register(experiment)
    runs = list(experiment.runs())
    said = "What might you consider? " * 4_000
    await place.store.record([a_response(run, said) for run in runs], [None] * len(runs))
    for what, output in itertools.product(TABLES, ("jsonl", "csv")):
        table = await open_table(what, place.store, chosen_runs(experiment))
        query = f"experiment={experiment.experiment_id}&table={what}&format={output}"

        answer = api.invoke(request("/api/export", query=query, **{"accept-encoding": "gzip"}))

        assert answer["statusCode"] == 200
        expected = b"".join([each async for each in file_pieces(table, output)])
        assert gzip.decompress(content(answer)) == expected
        assert answer["headers"]["content-type"] == FORMATS[output].media_type
        name = f"{experiment.experiment_id}{'' if what == 'responses' else f'-{what}'}.{output}"
        assert answer["headers"]["content-disposition"] == f'attachment; filename="{name}"'

    for output in ("csv", "parquet"):  # too large as it is; no pyarrow in a package
        query = f"experiment={experiment.experiment_id}&format={output}"
        refused = api.invoke(request("/api/export", query=query))
        assert refused["statusCode"] == 422
        command = f"`socratic-bench export {experiment.experiment_id} --format {output} --out "
        assert command in json.loads(content(refused))["detail"]


async def test_pages_of_long_turns_are_each_small_enough_for_a_function(
    api: Runtime, place: Place
) -> None:
    """Letters that take two bytes, and six in the JSON of Lambda."""
    experiment = an_experiment(models=1, scenarios=1, repeats=1, occasion="long turns")
    await place.store.register(experiment)
    [run] = experiment.runs()
    texts = [f"{number}. Почему же так выходит? " * 14_000 for number in range(12)]
    for turn, text in enumerate(texts, 1):
        response = a_response(run, text, turn=turn, last_turn=turn == len(texts))
        await place.store.record([response], [None])
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = api.invoke(
            request(f"/runs/{run.run_id}/turns", query=f"limit=100&offset={offset}")
        )
        assert len(json.dumps(answer)) < 6_000_000
        page = json.loads(content(answer))
        found += [turn["text"] for turn in page["turns"]]
        offset = page["next_offset"]

    assert found == texts


async def test_after_it_was_frozen_it_shows_what_happened_meanwhile(
    api: Runtime, place: Place
) -> None:
    before = api.invoke(request(COMPARISON))
    other = an_experiment(models=3, scenarios=5, repeats=2, occasion="meanwhile")
    with api.frozen():
        await place.store.register(other)
        await place.store.fold([a_score(run) for run in other.runs()], [])
    asked = request(COMPARISON, query=f"experiment={other.experiment_id}")
    after = api.invoke(asked)
    assert after["headers"]["etag"] != before["headers"]["etag"]
    runs = [model["total_runs"] for model in json.loads(after["body"])["models"]]
    assert runs == [10, 10, 10]


def test_a_missing_parameter_is_named(packages: Path, tmp_path: Path, place: Place) -> None:
    environment = {**place.environment, "SOCRATIC_API_KEYS_PARAMETER": "/absent/api-keys"}
    with (
        running(packages, "api", HANDLER, tmp_path, environment) as runtime,
        pytest.raises(FunctionFailed, match="/absent/api-keys"),
    ):
        runtime.invoke(request(COMPARISON))
