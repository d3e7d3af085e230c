"""The filters of the API's figures: models, a dimension and a time."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product

import httpx
import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.facts import a_response
from tests.dashboard.pressed_runs import TWO, filled
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
from tests.integration.api.conftest import opened
from tests.waiting import PATIENCE

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


WRONG_FILTERS: list[tuple[dict[str, str | list[str]], str]] = [
    ({"dimension": "ethics"}, "dimension"),
    ({"dimension": "x" * 301}, "dimension"),
    ({"model": "nobody"}, "model"),
    ({"model": "a\x00b"}, "model"),
    ({"model": [f"{number}" for number in range(21)]}, "model"),
    ({"since": "yesterday"}, "since"),
    ({"since": "2026-03-03", "until": "2026-03-01"}, "until"),
]


@pytest.mark.usefixtures("weeks")
async def test_a_wrong_filter_is_422_and_named(client: httpx.AsyncClient):
    for address, (asked, name) in product([*TABLES, "/weekly"], WRONG_FILTERS):
        answer = await client.get(address, params=asked)
        told = (answer.status_code, answer.headers["content-type"])
        assert told == (422, "application/problem+json"), (address, asked)
        assert answer.json()["detail"].startswith(f"{name}: "), (address, asked)


@pytest.mark.usefixtures("weeks")
async def test_a_time_without_an_experiment_is_an_empty_answer_that_says_so(
    client: httpx.AsyncClient,
):
    answer = (await client.get(ADDRESS, params={"since": "2027-01-01"})).raise_for_status().json()

    assert answer["models"] == []
    assert answer["filtered"]["told"].endswith("No experiment fits.")


@pytest.mark.usefixtures("weeks")
async def test_each_filter_has_an_answer_of_its_own_while_answers_are_fresh(store: SqlStore):
    asked = [
        {},
        {"dimension": "ethical"},
        {"dimension": "student"},
        {"model": "provider-1/tutor-1"},
        {"since": "2026-03-09"},
        {"until": "2026-03-08"},
        {"since": "2026-03-01", "until": "2026-03-08"},
    ]
    settings = ApiSettings(freshness_ms=60_000, store_timeout=PATIENCE)
    async with opened(store, settings) as client:
        for address in TABLES:
            first = [(await client.get(address, params=each)).content for each in asked]
            again = [(await client.get(address, params=each)).content for each in asked]
            assert again == first, address
            if address == ADDRESS:
                assert len(set(first)) == len(asked)


@pytest.mark.usefixtures("weeks")
async def test_the_csv_is_filtered_and_says_so(client: httpx.AsyncClient):
    asked = {"dimension": "ethical", "format": "csv"}

    head, *rows = (await client.get(ADDRESS, params=asked)).raise_for_status().text.splitlines()

    assert head.endswith(",filter")
    assert len(rows) == 5
    assert all("Filtered: dimension ethical." in row for row in rows)


async def test_runs_scenarios_scores_and_exports_are_those_of_the_dimension(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(3))
    await seed(store, planned)
    runs = list(planned.runs())
    await store.record([a_response(run, "Why?") for run in runs], [None] * len(runs))
    model = tutors(3)[2].id
    asked = {"dimension": "ethical", "model": model}

    page = (await client.get("/api/detailed-results", params=asked)).raise_for_status().json()
    table = (await client.get("/api/scenario-scores", params=asked)).raise_for_status().json()
    every = (await client.get("/api/scenarios")).raise_for_status().json()["scenarios"]
    own = (await client.get("/api/scenarios", params={"dimension": "ethical"})).json()["scenarios"]
    file = await client.get("/api/export", params=asked)

    assert page["total"] == len(page["runs"]) == 15
    assert {run["model_id"] for run in page["runs"]} == {model}
    assert [each["dimension"] for each in table["scenarios"]] == ["ethical"] * 5
    assert [len(each["scores"]) for each in table["models"]] == [5]
    assert own == [each for each in every if each["dimension"] == "ethical"]
    records = [json.loads(line) for line in file.text.splitlines()]
    assert len(records) == 15
    assert {(each["model_id"], each["dimension"]) for each in records} == {(model, "ethical")}
    assert file.headers["content-disposition"].endswith('-filtered.jsonl"')


@pytest.mark.usefixtures("weeks")
async def test_a_dimension_that_the_experiment_lacks_is_422_and_named(client: httpx.AsyncClient):
    lacks = "dimension: the experiment has no dimension 'ethics'; did you mean \"ethical\"?"
    for name in ("detailed-results", "scenario-scores", "scenarios", "export"):
        answer = await client.get(f"/api/{name}", params={"dimension": "ethics"})
        assert (answer.status_code, answer.json()["detail"]) == (422, lacks), name


@pytest.mark.usefixtures("weeks")
async def test_a_time_chooses_the_points_of_a_trend_and_a_dimension_its_scores(
    client: httpx.AsyncClient,
):
    model = tutors(3)[2].id
    asked = {"model": model, "dimension": "ethical", "since": "2026-03-09"}

    [series] = (
        (await client.get("/api/timeseries", params=asked)).raise_for_status().json()["models"]
    )
    none = (await client.get("/api/timeseries", params={"until": "2026-01-01"})).json()
    wrong = await client.get("/api/timeseries", params={"dimension": "ethics"})

    table = await client.get(ADDRESS, params={**asked, "experiment": "2026-W11"})
    [row] = table.json()["models"]
    [point] = series["points"]
    assert point["overall_score"] == row["overall_score"]
    assert point["confidence_interval"] == row["confidence_interval"]
    assert point["total_runs"] == 15
    assert none["models"] == []
    assert wrong.status_code == 422
    assert wrong.json()["detail"].startswith("dimension: ")


@pytest.mark.usefixtures("weeks")
async def test_each_figure_of_a_trend_is_an_answer_of_its_own(
    client: httpx.AsyncClient, store: SqlStore
):
    for week in range(2):
        await filled(store, TWO, week=week)
    asked = {"model": "p/breaks"}

    async def values(**more: str) -> list[float]:
        answer = await client.get("/api/timeseries", params={**asked, **more})
        [series] = answer.raise_for_status().json()["models"]
        return [point["value"] for point in series["points"]]

    # LL.. and .LL. break in turns 1 and 2, and keep half of their turns.
    assert await values(figure="turns-kept") == [0.5, 0.5]
    assert await values(figure="kept", turn="2") == [0, 0]
    assert await values(turn="4") == [1, 1]
    assert await values() == [0.5, 0.5]
    for wrong, named in ({"figure": "turns-kept", "turn": "1"}, "turn"), ({"turn": "0"}, "turn"):
        answer = await client.get("/api/timeseries", params={**asked, **wrong})
        assert (answer.status_code, answer.json()["detail"].split(":")[0]) == (422, named)


async def test_experiments_are_searched_by_words_and_by_time(
    client: httpx.AsyncClient, store: SqlStore
):
    for week in range(6):
        occasion = f"{'Spring' if week % 2 else 'Autumn'} week {'abcdef'[week]}"
        created_at = MONDAY + week * WEEK
        models = tutors(3 + (week == 4))
        await store.register(experiment(models, occasion=occasion, created_at=created_at))

    async def found(**asked: str) -> tuple[list[str], int]:
        page = (await client.get("/api/experiments", params=asked)).raise_for_status().json()
        return [each["created_at"][5:10] for each in page["experiments"]], page["total"]

    newest = (await client.get("/api/experiments")).json()["experiments"][0]["experiment_id"]
    spring = ["04-06", "03-23", "03-09"]
    assert await found(q="week spring") == (spring, 3)
    assert await found(q="SPRING  week", limit="1") == (spring[:1], 3)
    assert await found(q="spring", since="2026-03-09", until="2026-03-23") == (spring[1:], 2)
    assert await found(q="provider-2/tutor-2") == (["03-30"], 1)
    assert await found(q=newest) == (spring[:1], 1)
    assert await found(q="nothing") == ([], 0)


async def test_a_wrong_search_of_experiments_is_422_and_named(client: httpx.AsyncClient):
    for name, value in (("q", "x" * 201), ("since", "x")):
        answer = await client.get("/api/experiments", params={name: value})
        assert answer.status_code == 422, name
        assert answer.json()["detail"].startswith(f"{name}: ")
