"""The filters of the API's figures: models, a dimension and a time."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.adapters.sql.store import SqlStore
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
from tests.integration.api.conftest import opened

ADDRESS = "/api/model-comparison"
TABLES = [ADDRESS, "/api/latest-rankings", "/api/cost-analysis"]
WEEK = timedelta(weeks=1)


@pytest.fixture
async def weeks(store: SqlStore) -> list[str]:
    """The ids of two experiments, the older first."""
    planned = [
        experiment(tutors(5), occasion=f"2026-W{10 + week}", created_at=MONDAY + week * WEEK)
        for week in range(2)
    ]
    for each in planned:
        await seed(store, each)
    return [each.experiment_id for each in planned]


@pytest.mark.usefixtures("weeks")
async def test_models_dimension_and_time_filter_the_ranking(client: httpx.AsyncClient):
    models = [model.id for model in tutors(5)[2:4]]
    asked = {"model": models, "dimension": "ethical", "until": "2026-03-02"}

    answer = (await client.get(ADDRESS, params=asked)).raise_for_status().json()

    assert {row["model_id"] for row in answer["models"]} == set(models)
    assert {row["total_runs"] for row in answer["models"]} == {15}
    assert [each["occasion"] for each in answer["experiments"]] == ["2026-W10"]
    assert answer["filtered"]["since"] is None
    assert answer["filtered"]["until"] == "2026-03-03T00:00:00Z"
    assert answer["filtered"]["known_dimensions"] == ["ambiguous", "ethical", "student"]
    assert answer["winner"] is None


@pytest.mark.usefixtures("weeks")
async def test_the_short_ranking_the_week_and_the_costs_are_filtered_too(
    client: httpx.AsyncClient,
):
    asked = {"dimension": "ethical", "model": [tutors(3)[2].id]}

    short = (await client.get("/api/latest-rankings", params=asked)).raise_for_status().json()
    week = (await client.get("/weekly", params=asked)).raise_for_status().json()
    costs = (await client.get("/api/cost-analysis", params=asked)).raise_for_status().json()

    assert short["note"].startswith("Filtered: model provider-1/tutor-1; dimension ethical.")
    assert [row["total_runs"] for row in short["rankings"]] == [15]
    assert [row["total_runs"] for row in week["comparison"]["models"]] == [15]
    assert [row["total_runs"] for row in costs["models"]] == [15]


@pytest.mark.parametrize("address", [*TABLES, "/weekly"])
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"dimension": "ethics"}, "dimension"),
        ({"dimension": "x" * 301}, "dimension"),
        ({"model": "nobody"}, "model"),
        ({"model": "a\x00b"}, "model"),
        ({"model": [f"{number}" for number in range(21)]}, "model"),
        ({"since": "yesterday"}, "since"),
        ({"since": "2026-03-03", "until": "2026-03-01"}, "until"),
    ],
)
@pytest.mark.usefixtures("weeks")
async def test_a_wrong_filter_is_422_and_named(
    client: httpx.AsyncClient, address: str, asked: dict[str, str | list[str]], name: str
):
    answer = await client.get(address, params=asked)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].startswith(f"{name}: ")


@pytest.mark.usefixtures("weeks")
async def test_a_time_without_an_experiment_is_an_empty_answer_that_says_so(
    client: httpx.AsyncClient,
):
    answer = (await client.get(ADDRESS, params={"since": "2027-01-01"})).raise_for_status().json()

    assert answer["models"] == []
    assert answer["filtered"]["told"].endswith("No experiment fits.")


@pytest.mark.parametrize("address", TABLES)
@pytest.mark.usefixtures("weeks")
async def test_each_filter_has_an_answer_of_its_own_while_answers_are_fresh(
    store: SqlStore, address: str
):
    asked = [
        {},
        {"dimension": "ethical"},
        {"dimension": "student"},
        {"model": "provider-1/tutor-1"},
        {"since": "2026-03-09"},
        {"until": "2026-03-08"},
        {"since": "2026-03-01", "until": "2026-03-08"},
    ]
    settings = ApiSettings(freshness_ms=60_000, store_timeout=5)
    async with opened(store, settings) as client:
        first = [(await client.get(address, params=each)).content for each in asked]
        again = [(await client.get(address, params=each)).content for each in asked]

    assert again == first
    if address == ADDRESS:
        assert len(set(first)) == len(asked)


@pytest.mark.usefixtures("weeks")
async def test_the_csv_is_filtered_and_says_so(client: httpx.AsyncClient):
    asked = {"dimension": "ethical", "format": "csv"}

    head, *rows = (await client.get(ADDRESS, params=asked)).raise_for_status().text.splitlines()

    assert head.endswith(",filter")
    assert len(rows) == 5
    assert all("Filtered: dimension ethical." in row for row in rows)
