"""/api/model-comparison and /api/experiments over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

ADDRESS = "/api/model-comparison"


async def test_the_leaderboard_comes_best_first(client: httpx.AsyncClient, store: SqlStore):
    await seed(store, experiment(tutors(5)))

    answer = (await client.get(ADDRESS)).raise_for_status().json()

    figures = [model["overall_score"] for model in answer["models"]]
    assert figures == sorted(figures, reverse=True)
    assert answer["winner"] == answer["models"][0]["model_id"]


async def test_one_experiment_is_chosen_by_its_id_and_all_of_them_by_all(
    client: httpx.AsyncClient, store: SqlStore
):
    old = experiment(tutors(3))
    new = experiment(tutors(2), occasion="next", created_at=MONDAY + timedelta(days=7))
    await seed(store, old)
    await seed(store, new)

    one = (await client.get(ADDRESS, params={"experiment": new.experiment_id})).json()
    every = (await client.get(ADDRESS, params={"experiment": "all"})).json()

    assert [each["experiment_id"] for each in one["experiments"]] == [new.experiment_id]
    assert len(one["models"]) == 2
    assert {model["total_runs"] for model in every["models"]} == {90, 45}


async def test_an_unknown_experiment_is_404_and_named(client: httpx.AsyncClient):
    answer = await client.get(ADDRESS, params={"experiment": "exp-nowhere"})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "exp-nowhere" in answer.json()["detail"]


async def test_an_experiment_is_found_by_its_occasion_and_an_ambiguous_text_is_400(
    client: httpx.AsyncClient, store: SqlStore
):
    weeks = [experiment(tutors(1), occasion=occasion) for occasion in ("week 1", "week 2")]
    for week in weeks:
        await seed(store, week)

    for address in (ADDRESS, "/api/cost-analysis"):
        one = (await client.get(address, params={"experiment": "week 2"})).raise_for_status()
        several = await client.get(address, params={"experiment": "exp-"})

        [model] = one.json()["models"]
        assert model["experiment_ids"] == [weeks[1].experiment_id], address
        told = (several.status_code, several.headers["content-type"])
        assert told == (400, "application/problem+json"), address
        assert all(week.experiment_id in several.json()["detail"] for week in weeks), address


async def test_an_overlong_experiment_id_is_refused(client: httpx.AsyncClient):
    answer = await client.get(ADDRESS, params={"experiment": "x" * 201})

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("experiment: ")


async def test_who_has_the_answer_already_is_told_so(client: httpx.AsyncClient, store: SqlStore):
    await seed(store, experiment(tutors(3)))
    first = await client.get(ADDRESS)

    again = await client.get(ADDRESS, headers={"if-none-match": first.headers["etag"]})
    other = await client.get(ADDRESS, headers={"if-none-match": 'W/"other"'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert other.status_code == 200


async def test_a_big_answer_is_compressed_for_those_who_take_it(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(10)))

    plain = await client.get(ADDRESS, headers={"accept-encoding": "identity"})
    small = await client.get(ADDRESS, headers={"accept-encoding": "gzip"})
    refused = await client.get(ADDRESS, headers={"accept-encoding": "gzip;q=0"})

    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert small.content == plain.content


async def test_experiments_come_newest_first_and_in_pages(
    client: httpx.AsyncClient, store: SqlStore
):
    for week in range(3):
        planned = experiment(
            tutors(2), occasion=f"W{week}", created_at=MONDAY + timedelta(weeks=week)
        )
        await seed(store, planned, share=1.0 if week < 2 else 0.5)

    page = (await client.get("/api/experiments", params={"limit": 2})).json()
    rest = (await client.get("/api/experiments", params={"limit": 2, "offset": 2})).json()

    assert [each["occasion"] for each in page["experiments"]] == ["W2", "W1"]
    assert [(each["planned"], each["done"]) for each in page["experiments"]] == [(90, 45), (90, 90)]
    assert [each["occasion"] for each in rest["experiments"]] == ["W0"]
    assert page["total"] == rest["total"] == 3


async def test_a_page_out_of_bounds_is_refused(client: httpx.AsyncClient):
    for limit in ("0", "501", "-1", "two", "٣", "9" * 30):
        answer = await client.get("/api/experiments", params={"limit": limit})
        assert answer.status_code == 422, limit
        assert answer.json()["detail"].startswith("limit: "), limit


async def test_a_store_that_is_away_is_503_and_readiness_says_so_while_the_process_lives(
    client: httpx.AsyncClient, store: SqlStore
):
    assert (await client.get("/readyz")).status_code == 200
    await store.close()

    ready = await client.get("/readyz")

    assert ready.status_code == 503
    assert ready.headers["retry-after"] == "1"
    assert "sqlite" not in ready.text
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_csv_is_what_the_command_prints_byte_by_byte(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(3))
    await seed(store, planned)

    answer = await client.get(
        ADDRESS, params={"format": "csv", "experiment": planned.experiment_id}
    )

    comparison = await model_comparison(store, planned.experiment_id)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    assert answer.content == comparison_csv(comparison).encode()
    assert planned.experiment_id in answer.text


async def test_an_unknown_format_is_refused(client: httpx.AsyncClient):
    answer = await client.get(ADDRESS, params={"format": "xlsx"})

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("format: ")
