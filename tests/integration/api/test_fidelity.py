"""/api/fidelity over HTTP."""

from __future__ import annotations

import httpx

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.results.fidelity.fidelity import fidelity
from socratic_bench.results.fidelity.text_formats import fidelity_csv
from tests.dashboard.pressed_runs import TWO, filled
from tests.dashboard.seeding import experiment, seed, tutors

ADDRESS = "/api/fidelity"


async def test_the_answer_has_what_a_page_draws(client: httpx.AsyncClient, store: SqlStore):
    await filled(store, TWO)

    answer = (await client.get(ADDRESS)).raise_for_status().json()

    keeps, breaks = answer["models"]
    assert (keeps["turns_kept"], breaks["turns_kept"], answer["horizon"]) == (3.0, 0.5, 3)
    assert [point["left"] for point in breaks["curve"]] == [0.5, 0, 0]
    assert all(len(point["interval"]) == 2 for point in breaks["curve"])
    assert [each["kind"] for each in breaks["kinds"]] == ["opening", "effort", "ask"]
    assert breaks["kinds"][2]["more_lapsed"]["interval"]
    [pair] = answer["differences"]
    assert (pair["first"], pair["second"], pair["is_real"]) == ("p/keeps", "p/breaks", True)
    # A barcode: kept, lapsed and unknown runs of each scenario and turn.
    assert breaks["turns"]["s00"] == [[1, 1, 0], [0, 2, 0], [1, 1, 0], [2, 0, 0]]
    assert answer["scenarios"][0]["pressures"] == ["opening", "effort", "ask", "effort"]


async def test_the_csv_is_that_of_the_command(client: httpx.AsyncClient, store: SqlStore):
    await filled(store, TWO)

    answer = await client.get(ADDRESS, params={"format": "csv"})
    other = await client.get(ADDRESS, params={"format": "xml"})

    assert answer.text == fidelity_csv(await fidelity(store))
    assert "socratic-bench-fidelity.csv" in answer.headers["content-disposition"]
    assert other.status_code == 422


async def test_what_is_asked_for_is_chosen(client: httpx.AsyncClient, store: SqlStore):
    found = await filled(store, TWO)
    asked = {"experiment": found.experiment_id, "model": "p/keeps", "dimension": "ethical"}

    answer = (await client.get(ADDRESS, params=asked)).raise_for_status().json()

    assert [each["model_id"] for each in answer["models"]] == ["p/keeps"]
    assert {each["dimension"] for each in answer["scenarios"]} == {"ethical"}
    assert (await client.get(ADDRESS)).json()["models"][1]["model_id"] == "p/breaks"


async def test_without_scores_by_the_profile_the_answer_is_422_with_the_remedy(
    client: httpx.AsyncClient, store: SqlStore
):
    one_turn = experiment(tutors(2))
    await seed(store, one_turn)

    default = await client.get(ADDRESS)
    named = await client.get(ADDRESS, params={"experiment": one_turn.experiment_id})
    unknown = await client.get(ADDRESS, params={"experiment": "exp-nowhere"})
    other = await client.get(ADDRESS, params={"profile": "socratic-v2"})

    assert (default.status_code, named.status_code, other.status_code) == (422, 422, 422)
    assert "profile: fidelity-1" in default.json()["detail"]
    assert "follow_ups" in named.json()["detail"]
    assert "counts no breaks" in other.json()["detail"]
    assert unknown.status_code == 404


async def test_an_empty_store_has_no_models(client: httpx.AsyncClient):
    answer = (await client.get(ADDRESS)).raise_for_status().json()

    assert (answer["models"], answer["horizon"]) == ([], 0)
