"""The ranking in short, the experiment of a week, and scores of the predecessor."""

from __future__ import annotations

import httpx

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.seeding import experiment, seed, tutors

OLD = {"scores": {"open_ended": 75, "probing_depth": 82, "overall": 84.0}}
CONVERTED = {
    "scores": {"open_ended": 0.75, "overall": 0.84, "probing_depth": 0.82},
    "status": "converted",
}


async def test_the_latest_rankings_are_those_of_the_leaderboard(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(5)))

    short = (await client.get("/api/latest-rankings")).json()
    table = (await client.get("/api/model-comparison")).json()

    assert [each["model_id"] for each in short["rankings"]] == [
        each["model_id"] for each in table["models"]
    ]
    for ranked, model in zip(short["rankings"], table["models"], strict=True):
        assert ranked == {name: model[name] for name in ranked}
    assert short["winner"] == table["winner"]


async def test_a_week_is_compared_by_its_name_or_else_the_newest(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(3), occasion="2026-W09"))
    await seed(store, experiment(tutors(4), occasion="2026-W10"), share=0.5)
    await seed(store, experiment(tutors(2), occasion="a trial"))

    newest = (await client.get("/weekly")).json()
    earlier = (await client.get("/weekly?week=2026-W09")).json()

    assert (newest["week"], newest["weeks"]) == ("2026-W10", ["2026-W10", "2026-W09"])
    assert len(newest["comparison"]["models"]) == 4
    assert [each["occasion"] for each in earlier["comparison"]["experiments"]] == ["2026-W09"]


async def test_a_week_without_an_experiment_is_a_problem(client: httpx.AsyncClient):
    for week, status in (("", 404), ("2026-W10", 404), ("2026-10", 422), ("2026-W54", 422)):
        asked = {"week": week} if week else {}
        assert (await client.get("/weekly", params=asked)).status_code == status, week


async def test_an_unchanged_answer_is_not_sent_again(client: httpx.AsyncClient, store: SqlStore):
    await seed(store, experiment(tutors(2), occasion="2026-W10"))
    for path in ("/api/latest-rankings", "/weekly", "/api/experiments"):
        etag = (await client.get(path)).headers["etag"]
        again = await client.get(path, headers={"if-none-match": etag})
        assert again.status_code == 304, path


async def test_old_scores_of_84_are_told_as_0_84(client: httpx.AsyncClient):
    alone = await client.post("/api/score", json=OLD)
    batch = await client.post("/api/score", json={"items": [OLD, {"text": "Why?"}, OLD]})
    flat = await client.post("/api/score", json={**OLD["scores"], "id": 7})

    assert alone.json() == CONVERTED
    first, second, third = batch.json()["scores"]
    assert first == third == CONVERTED
    assert second["status"] == "ok"
    assert flat.json() == CONVERTED


async def test_an_old_figure_below_one_is_still_of_a_hundred(client: httpx.AsyncClient):
    answer = await client.post("/api/score", json={"open_ended": 0.8, "overall": 0.8})

    assert answer.json()["scores"] == {"open_ended": 0.008, "overall": 0.008}


async def test_a_figure_that_no_old_score_can_be_is_a_problem(client: httpx.AsyncClient):
    for scores in ({"overall": 101}, {"open_ended": -1}, {"overall": 1e300}):
        answer = await client.post("/api/score", json={"scores": scores})
        assert answer.status_code == 422, scores
        assert "0 to 100" in answer.json()["detail"]
