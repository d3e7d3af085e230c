"""`/api/scenario-scores`: each model on each scenario of an experiment."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from tests.dashboard.seeding import experiment, seed, tutors

ADDRESS = "/api/scenario-scores"


@pytest.fixture
async def planned(store: SqlStore) -> Experiment:
    planned = experiment(tutors(3))
    await seed(store, planned, share=0.9)
    return planned


async def test_a_score_is_the_mean_of_its_runs(client: httpx.AsyncClient, planned: Experiment):
    table = (await client.get(ADDRESS)).json()
    whole = (await client.get("/api/model-comparison")).json()

    assert [each["scenario_id"] for each in table["scenarios"]] == [
        each.id for each in planned.manifest.scenarios
    ]
    assert table["vectors"] == ["verbosity", "exploratory", "interrogative"]
    for model in table["models"]:
        [row] = [each for each in whole["models"] if each["model_id"] == model["model_id"]]
        scores = model["scores"]
        scored = sum(each["scored_responses"] for each in scores)
        assert scored == row["scored_responses"]
        assert sum(each["runs"] for each in scores) == row["total_runs"]
        for name in ("overall", "exploratory"):
            means = [each.get(name, each["vectors"].get(name)) for each in scores]
            total = sum(
                mean * each["scored_responses"]
                for mean, each in zip(means, scores, strict=True)
                if mean is not None
            )
            expected = row["overall_score"] if name == "overall" else row["vectors"][name]["mean"]
            assert total / scored == pytest.approx(expected)


async def test_one_model_has_the_row_that_it_has_among_all(
    client: httpx.AsyncClient, planned: Experiment
):
    every = (await client.get(ADDRESS)).json()["models"]
    one = (await client.get(ADDRESS, params={"model": every[1]["model_id"]})).json()["models"]

    assert one == [every[1]]


async def test_a_scenario_without_a_run_has_no_score_which_is_not_zero(
    client: httpx.AsyncClient, store: SqlStore
):
    await store.register(experiment(tutors(2)))

    [first, *_] = (await client.get(ADDRESS)).json()["models"][0]["scores"]

    assert first == {
        "overall": None,
        "vectors": {"verbosity": None, "exploratory": None, "interrogative": None},
        "runs": 0,
        "scored_responses": 0,
        "responses": 0,
    }


@pytest.mark.usefixtures("planned")
async def test_a_wrong_question_is_a_problem(client: httpx.AsyncClient):
    asked = (("experiment=all", 422), ("experiment=exp-nowhere", 404), ("model=nobody", 422))
    for query, status in asked:
        answer = await client.get(f"{ADDRESS}?{query}")
        assert answer.status_code == status, query
        assert answer.headers["content-type"] == "application/problem+json", query
