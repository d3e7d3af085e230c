"""The steps of an interval over HTTP: the figures of the ranking, and those of written scores."""

from __future__ import annotations

from itertools import product

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.seeding import experiment, seed, tutors

EXAMPLE = "0.9 0.8; 0.7, 0.9\n.6 0.6;\r\n0.9 1;0.8 0.8;"
"""The example of docs/results.md."""


async def test_written_scores_give_the_steps_of_the_documents(client: httpx.AsyncClient):
    steps = (await client.get("/api/interval", params={"scores": EXAMPLE})).json()

    assert (steps["runs"], len(steps["scenarios"])) == (10, 5)
    assert steps["mean"] == pytest.approx(0.80)
    residuals = [each["residual"] for each in steps["scenarios"]]
    assert residuals == pytest.approx([0.1, 0.0, -0.4, 0.3, 0.0])
    assert steps["squares"] == pytest.approx(0.26)
    assert steps["variance"] == pytest.approx(0.00325)
    assert steps["standard_error"] == pytest.approx(0.057, abs=0.0005)
    assert steps["effective_answers"] == pytest.approx(49.2, abs=0.05)
    assert steps["jump"] == pytest.approx(0.10)
    assert steps["variance_below"] == pytest.approx(0.0033, abs=5e-5)
    assert steps["variance_above"] == pytest.approx(0.0013, abs=5e-5)
    assert steps["degrees_of_freedom"] == 4
    assert steps["quantile"] == pytest.approx(2.78, abs=0.005)
    assert steps["interval"] == pytest.approx([0.61, 0.91], abs=0.005)
    assert steps["interval_note"] is None


async def test_the_steps_of_a_model_end_in_the_interval_of_the_ranking(
    store: SqlStore, client: httpx.AsyncClient
):
    planned = experiment(tutors(4))
    await seed(store, planned)
    table = (await client.get("/api/model-comparison")).json()
    vectors = ["overall", "verbosity", "exploratory", "interrogative"]
    for model, vector in product(table["models"], vectors):
        asked = {"experiment": planned.experiment_id, "model": model["model_id"], "vector": vector}
        steps = (await client.get("/api/interval", params=asked)).json()
        if vector == "overall":
            expected = (model["overall_score"], model["confidence_interval"])
        else:
            figure = model["vectors"][vector]
            expected = (figure["mean"], figure["interval"])
        assert (steps["mean"], steps["interval"]) == expected, vector
        assert len(steps["scenarios"]) == 15
        parts = [part["name"] for part in steps["parts"]]
        assert parts == (vectors[1:] if vector == "overall" else [vector])
        assert (steps["jump"] is None) == (vector == "overall")


async def test_fewer_than_five_scenarios_have_a_mean_and_a_note(client: httpx.AsyncClient):
    for scores, note in (
        ("0.5 0.5; 0.5", "An interval needs 5 scenarios; 2 scenarios have a score."),
        ("1", "An interval needs 5 scenarios; 1 scenario has a score."),
    ):
        steps = (await client.get("/api/interval", params={"scores": scores})).json()
        assert steps["mean"] is not None, scores
        assert (steps["interval"], steps["interval_note"], steps["variance"]) == (None, note, None)


async def test_scores_without_spread_have_the_steps_that_apply(client: httpx.AsyncClient):
    ones = (await client.get("/api/interval", params={"scores": "1;1;1;1;1"})).json()
    alike = (await client.get("/api/interval", params={"scores": "0.5;" * 6})).json()

    for steps, ends in ((ones, [0.4920, 1]), (alike, [0.2858, 0.7142])):
        assert (steps["variance"], steps["effective_answers"], steps["jump"]) == (0, None, 1)
        assert steps["interval"] == pytest.approx(ends, abs=5e-5)


MISTAKES: list[tuple[dict[str, str], str]] = [
    ({}, "scores: are missing, and so is a model"),
    ({"scores": ""}, "scores: hold no number"),
    ({"scores": "0.5 0.6; 0.7 1.2"}, "scores, scenario 2: '1.2' is no number from 0 to 1"),
    ({"scores": "0.5; nan"}, "scores, scenario 2: 'nan' is no number"),
    ({"scores": "0.5; 1e-9"}, "scenario 2: '1e-9' is no number"),
    ({"scores": "0 " * 10_001}, "scores: longer than 20,000 characters"),
    ({"model": "nobody"}, "model: the experiment has no model 'nobody'"),
    ({"model": "reference/socratic", "vector": "verbositi"}, "did you mean verbosity?"),
    ({"model": "reference/socratic", "profile": "x"}, "unknown scorer profile 'x'"),
    ({"model": "reference/socratic", "experiment": "all"}, "experiment: one, and not `all`"),
]


async def test_a_mistake_gets_one_sentence_with_its_place(
    store: SqlStore, client: httpx.AsyncClient
):
    await seed(store, experiment(tutors(2)))
    for asked, told in MISTAKES:
        answer = await client.get("/api/interval", params=asked)
        kind = (answer.status_code, answer.headers["content-type"])
        assert kind == (422, "application/problem+json"), asked
        assert told in answer.json()["detail"]
