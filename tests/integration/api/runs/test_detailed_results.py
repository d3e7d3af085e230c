"""`/api/detailed-results`: the runs of an experiment, a page at a time."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.facts import a_failure, a_response
from tests.dashboard.seeding import experiment, tutors

ADDRESS = "/api/detailed-results"


@pytest.fixture
async def planned(store: SqlStore) -> Experiment:
    """90 runs, of which the first has a response and the second a failure."""
    planned = experiment(tutors(2))
    await store.register(planned)
    first, second, *_ = planned.runs()
    await store.record([a_response(first)], [None])
    await store.record_failures([RecordedFailure(a_failure(second), 0)])
    return planned


async def page(client: httpx.AsyncClient, **query: object) -> dict[str, Any]:
    answer = await client.get(ADDRESS, params={name: str(each) for name, each in query.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_runs_come_in_the_order_of_the_plan_with_what_became_of_them(
    client: httpx.AsyncClient, planned: Experiment
):
    found = await page(client)

    assert found["total"] == 90
    ids = [run.run_id for run in planned.runs()]
    assert [run["run_id"] for run in found["runs"]] == ids[:50]
    first, second, third, *_ = found["runs"]
    assert first["scores"]["overall"] is not None
    assert second["failure"] is not None
    assert (third["turns"], third["failure"], third["scores"]) == (0, None, {"overall": None})


async def test_pages_join_to_the_whole_plan(client: httpx.AsyncClient, planned: Experiment):
    pages = [await page(client, offset=offset, limit=40) for offset in (0, 40, 80, 120)]

    ids = [run["run_id"] for each in pages for run in each["runs"]]
    assert ids == [run.run_id for run in planned.runs()]
    assert [each["next_offset"] for each in pages] == [40, 80, None, None]


async def test_a_filter_leaves_the_runs_of_a_model_or_a_scenario(
    client: httpx.AsyncClient, planned: Experiment
):
    wanted = {
        "model": planned.manifest.models[1].id,
        "scenario": planned.manifest.scenarios[2].id,
    }
    for filters in (("model",), ("scenario",), ("model", "scenario")):
        found = await page(client, **{name: wanted[name] for name in filters}, limit=200)
        expected = [
            run.run_id
            for run in planned.runs()
            if all(getattr(run, f"{name}_id") == wanted[name] for name in filters)
        ]
        assert [run["run_id"] for run in found["runs"]] == expected, filters
        assert found["total"] == len(expected), filters


@pytest.mark.usefixtures("planned")
async def test_a_wrong_question_is_a_problem(client: httpx.AsyncClient):
    for query, status in (
        ("experiment=all", 422),
        ("experiment=exp-nowhere", 404),
        ("model=nobody", 422),
        ("scenario=nothing", 422),
        ("limit=201", 422),
        ("offset=-1", 422),
        ("model=%00", 422),
    ):
        answer = await client.get(f"{ADDRESS}?{query}")
        assert answer.status_code == status, query
        assert answer.headers["content-type"] == "application/problem+json", query


async def test_a_store_without_experiments_says_so(client: httpx.AsyncClient):
    answer = await client.get(ADDRESS)

    assert answer.status_code == 404
    assert "no experiment yet" in answer.json()["detail"]
