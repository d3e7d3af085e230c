"""Another profile over HTTP: a rescoring is requested, and every figure is read by either one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.capabilities import Capabilities
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_cli.scoring_workers import scoring_broker
from tests.contract.store.facts import a_response, an_experiment, record_unleased
from tests.waiting import until

PROFILE = {"profile": "socratic-v2"}
FIGURES = [
    "/api/model-comparison?",
    "/api/model-comparison?format=csv&",
    "/api/compare?a=reference/tutor-0&b=reference/tutor-1&",
    "/api/timeseries?",
    "/api/latest-rankings?",
    "/api/cost-analysis?",
    "/api/scenarios?",
    "/api/scenario-scores?",
    "/weekly?",
    "/api/detailed-results?",
    "/api/export?",
    "/runs/RUN/summary?",
    "/runs/RUN/turns?",
]
WITHOUT_VECTORS = {
    "/api/timeseries",
    "/api/latest-rankings",
    "/api/cost-analysis",
    "/api/scenarios",
}


@pytest.fixture
async def experiment(store: SqlStore) -> Experiment:
    """An experiment with all its responses, scored by its own profile."""
    experiment = await store.register(an_experiment(scenarios=6, occasion="2026-W10"))
    async with scoring_broker(store, SystemClock()) as broker:
        client = _client(store, broker)
        await record_unleased(store, [a_response(run) for run in experiment.runs()])
        await client.post(_address(experiment), json={"profile": "socratic-v1"})
        await until(
            lambda: store.progress(experiment.experiment_id),
            lambda progress: progress.done == 24,
            "the scores by the own profile",
        )
    return experiment


@pytest.fixture
async def rescoring(store: SqlStore) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API with a broker whose workers are there."""
    async with scoring_broker(store, SystemClock()) as broker:
        yield _client(store, broker)


def _client(store: SqlStore, broker: MemoryBroker | None, **given: object) -> httpx.AsyncClient:
    settings = ApiSettings.model_validate({"freshness_ms": 0, "store_timeout": 5, **given})
    transport = httpx.ASGITransport(
        build_app(store, settings, capabilities=Capabilities(scoring_broker=broker))
    )
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def _address(experiment: Experiment) -> str:
    return f"/api/experiments/{experiment.experiment_id}/rescore"


async def _rescored(client: httpx.AsyncClient, store: SqlStore, experiment: Experiment) -> None:
    assert (await client.post(_address(experiment), json=PROFILE)).status_code == 200
    ids = [run.run_id for run in experiment.runs()]
    await until(
        lambda: store.done_runs(experiment.experiment_id, ids, "socratic-v2"),
        lambda done: len(done) == len(ids),
        "the scores by socratic-v2",
    )


async def test_a_rescoring_counts_what_it_publishes_and_a_second_one_publishes_nothing(
    rescoring: httpx.AsyncClient, store: SqlStore, experiment: Experiment
) -> None:
    answer = await rescoring.post(_address(experiment), json=PROFILE)
    assert answer.json() == {
        "experiment_id": experiment.experiment_id,
        **PROFILE,
        "runs": 24,
        "responses": 24,
        "failures": 0,
        "already_scored": 0,
        "next_offset": None,
    }
    await _rescored(rescoring, store, experiment)
    again = (await rescoring.post(_address(experiment), json=PROFILE)).json()
    assert (again["runs"], again["already_scored"]) == (0, 24)


async def test_an_offset_goes_on_behind_earlier_runs(
    rescoring: httpx.AsyncClient, experiment: Experiment
) -> None:
    answer = await rescoring.post(_address(experiment), json={**PROFILE, "offset": 20})
    assert answer.json()["runs"] == 4


async def test_a_wrong_request_gets_one_sentence(
    rescoring: httpx.AsyncClient, experiment: Experiment
) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"profile": "socratic-v9"}, "known: socratic-v1, socratic-v2, socratic-v3"),
        ({}, "profile: is missing"),
        ({**PROFILE, "offset": -1}, "offset: must be 0 or more"),
        ({**PROFILE, "ofset": 1}, "did you mean `offset`?"),
    ]
    for body, named in wrong:
        answer = await rescoring.post(_address(experiment), json=body)
        assert (answer.status_code, named in answer.json()["detail"]) == (422, True), answer.text


async def test_a_rescoring_needs_json_a_known_experiment_a_key_and_a_broker(
    rescoring: httpx.AsyncClient, store: SqlStore, experiment: Experiment
) -> None:
    text = {"content-type": "text/plain"}
    plain = await rescoring.post(_address(experiment), content="{}", headers=text)
    unknown = await rescoring.post("/api/experiments/exp-nowhere/rescore", json=PROFILE)
    locked = _client(store, None, api_keys="a-key-of-the-operator")
    refused = await locked.post(_address(experiment), json=PROFILE)
    alone = await _client(store, None).post(_address(experiment), json=PROFILE)
    answers = (plain, unknown, refused, alone)
    assert [each.status_code for each in answers] == [415, 404, 401, 409]
    assert "socratic-bench rescore" in alone.json()["detail"]


async def test_each_figure_is_read_by_either_profile(
    rescoring: httpx.AsyncClient, store: SqlStore, experiment: Experiment
) -> None:
    run_id = next(experiment.runs()).run_id
    paths = [each.replace("RUN", run_id) for each in FIGURES]
    missing = f"socratic-bench rescore {experiment.experiment_id} --profile socratic-v2"
    for path in paths:
        early = await rescoring.get(f"{path}profile=socratic-v2")
        told = early.json()["detail"]
        assert (early.status_code, missing in told) == (422, True), (path, told)
    await _rescored(rescoring, store, experiment)
    for path in paths:
        own = await rescoring.get(path)
        first = await rescoring.get(f"{path}profile=socratic-v1")
        second = await rescoring.get(f"{path}profile=socratic-v2")
        assert first.text == own.text, path
        assert "withholding" not in own.text, path
        assert second.text != own.text, path
        assert "withholding" in second.text or path.rstrip("?") in WITHOUT_VECTORS, path


async def test_a_profile_that_nobody_has_gets_one_sentence_everywhere(
    rescoring: httpx.AsyncClient, experiment: Experiment
) -> None:
    """Every address that takes an experiment or a run takes a profile too."""
    document = (await rescoring.get("/openapi.json")).json()
    run_id = next(experiment.runs()).run_id
    asked = []
    for path, operations in document["paths"].items():
        names = {each["name"] for each in operations.get("get", {}).get("parameters", ())}
        if not names & {"experiment", "profile", "run_id"}:
            continue
        asked.append(path)
        assert "profile" in names, path
        query = {"profile": "nobody-v1", "a": "reference/tutor-0", "b": "reference/tutor-1"}
        if path == "/api/interval":
            query["model"] = "reference/tutor-0"
        answer = await rescoring.get(path.replace("{run_id}", run_id), params=query)
        assert (answer.status_code, answer.headers["content-type"]) == (
            422,
            "application/problem+json",
        ), path
        assert "'nobody-v1'" in answer.json()["detail"], path
    assert len(asked) >= 12


async def test_each_answer_of_a_page_names_the_profiles_to_choose_from(
    rescoring: httpx.AsyncClient, store: SqlStore, experiment: Experiment
) -> None:
    await _rescored(rescoring, store, experiment)
    run_id = next(experiment.runs()).run_id
    for path in (
        "/api/compare?a=reference/tutor-0&b=reference/tutor-1&",
        "/api/latest-rankings?",
        "/api/scenarios?",
        "/api/scenario-scores?",
        f"/runs/{run_id}/summary?",
    ):
        own = (await rescoring.get(path)).json()
        other = (await rescoring.get(f"{path}profile=socratic-v2")).json()
        assert own["profiles"] == other["profiles"] == ["socratic-v1", "socratic-v2"], path
        assert (own["profile"], other["profile"]) == ("socratic-v1", "socratic-v2"), path


async def test_the_leaderboard_names_the_profiles_that_there_are(
    rescoring: httpx.AsyncClient, store: SqlStore, experiment: Experiment
) -> None:
    before = (await rescoring.get("/api/model-comparison")).json()
    await _rescored(rescoring, store, experiment)
    after = (await rescoring.get("/api/model-comparison?profile=socratic-v2")).json()
    assert before["profiles"] == ["socratic-v1"]
    assert after["profiles"] == ["socratic-v1", "socratic-v2"]
    assert after["profile"] == "socratic-v2"
    assert "asking" in after["vectors"]
    assert after["baseline"] is not None
    assert "not by the profile of the plan, socratic-v1" in after["note"]
