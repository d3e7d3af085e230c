"""The scenarios of an experiment over HTTP: what they ask, and their figures over the tutors."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.seeding import SCENARIOS, experiment, seed, tutors

PATH = "/api/scenarios"


async def test_each_scenario_has_its_texts_and_its_figures_over_the_real_models(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(8)), failing=0.1)

    told = (await client.get(PATH)).json()
    table = (await client.get("/api/scenario-scores")).json()

    assert told["tutors"] == "models"
    assert [each["scenario_id"] for each in told["scenarios"]] == [each.id for each in SCENARIOS]
    first = told["scenarios"][0]
    assert first["student_messages"] == ["Prompt 1"]
    real = [each["scores"][0] for each in table["models"] if each["kind"] == "model"]
    assert first["mean"] == pytest.approx(sum(each["overall"] for each in real) / len(real))
    assert first["models"] == 6
    assert first["discrimination"] > 0
    assert first["runs"] == 24
    assert first["scored_responses"] < first["responses"]


async def test_reference_tutors_count_where_there_are_few_models(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(4)))

    told = (await client.get(PATH)).json()

    assert told["tutors"] == "all"
    assert {each["models"] for each in told["scenarios"]} == {4}


async def test_two_tutors_give_no_interval_and_no_discrimination(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(2), occasion="2026-W10"))

    told = (await client.get(f"{PATH}?experiment=2026-W10")).json()

    figures = {(each["interval"], each["discrimination"]) for each in told["scenarios"]}
    assert figures == {(None, None)}
    assert all(each["mean"] is not None for each in told["scenarios"])
