"""`/runs/{run_id}`: one run, as a summary and turn by turn."""

from __future__ import annotations

from itertools import product

import httpx
import pytest

from socratic_api.http.whole_answers import MOST_BYTES
from socratic_api.routes.one_run import RunFailed
from socratic_api.routes.query import next_offset, page_within
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.scoring.score import score
from tests.contract.store.facts import a_failure, a_response
from tests.dashboard.seeding import experiment, tutors

HOSTILE = "<script>alert(1)</script> What, \U0001f914 then?"


@pytest.fixture
async def run(store: SqlStore) -> Run:
    """A run of two turns."""
    planned = experiment(tutors(2))
    await store.register(planned)
    run = next(planned.runs())
    responses = [
        a_response(run, HOSTILE, turn=1, last_turn=False),
        a_response(run, "You should rest.", turn=2, cost=None),
    ]
    await store.record(responses, [None, None])
    return run


async def test_a_summary_is_the_mean_of_the_turns_and_the_sum_of_what_they_took(
    client: httpx.AsyncClient, run: Run
):
    answer = await client.get(f"/runs/{run.run_id}/summary")

    summary = answer.json()
    assert answer.status_code == 200
    assert {name: summary[name] for name in ("run_id", "model_id", "scenario_id", "repeat")} == {
        "run_id": run.run_id,
        "model_id": run.model_id,
        "scenario_id": run.scenario_id,
        "repeat": 1,
    }
    first, second = (score(text, output_tokens=12) for text in (HOSTILE, "You should rest."))
    assert summary["scores"]["overall"] == pytest.approx(
        (float(first["overall"] or 0) + float(second["overall"] or 0)) / 2
    )
    assert (summary["turns"], summary["scored_turns"]) == (2, 2)
    assert summary["turn_scores"] == [first["overall"], second["overall"]]
    assert summary["total_visible_output_tokens"] == 24
    assert summary["total_cost_usd"] == pytest.approx(21e-6)
    assert summary["failure"] is None


async def test_a_summary_has_the_plan_around_the_run(client: httpx.AsyncClient, run: Run):
    found = (await client.get(f"/runs/{run.run_id}/summary")).json()["context"]

    assert found["model_name"] == "Socratic tutor"
    assert (found["kind"], found["simulated_latency_ms"]) == ("reference", 200)
    assert (found["profile"], found["repeats"]) == ("socratic-v1", 3)
    assert found["system_prompt"].startswith("You are a tutor")
    assert found["scenario"]["turns"] == 1


async def test_runs_lead_through_all_of_a_model_and_through_all_models_of_a_scenario(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(3))
    await store.register(planned)
    await store.record([a_response(run) for run in planned.runs()], [None] * 135)

    async def path(start: Run, link: str) -> list[tuple[str, str, int]]:
        met = []
        beside: dict[str, str] | None = {"run_id": start.run_id}
        while beside is not None:
            found = (await client.get(f"/runs/{beside['run_id']}/summary")).json()
            met.append((found["model_id"], found["scenario_id"], found["repeat"]))
            beside = found["context"][link]
        return met

    first, *_, last = planned.runs()
    scenarios, models = planned.manifest.scenarios, planned.manifest.models
    of_model = [(models[0].id, each.id, repeat) for each in scenarios for repeat in (1, 2, 3)]
    assert await path(first, "next") == of_model
    of_scenario = [(each.id, scenarios[-1].id, 3) for each in models]
    assert await path(last, "previous_model") == of_scenario[::-1]
    assert await path(last, "next_model") == of_scenario[-1:]


async def test_a_run_whose_plan_is_gone_has_no_context(
    client: httpx.AsyncClient, run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    async def gone(_experiment_id: str) -> None:
        return None

    monkeypatch.setattr(store, "experiment", gone)

    found = (await client.get(f"/runs/{run.run_id}/summary")).json()

    assert found["context"] is None
    assert found["turns"] == 2


async def test_turns_come_as_they_were_said_with_the_evidence_in_code_points(
    client: httpx.AsyncClient, run: Run
):
    page = (await client.get(f"/runs/{run.run_id}/turns")).json()

    assert [turn["text"] for turn in page["turns"]] == [HOSTILE, "You should rest."]
    assert page["total"] == 2
    first = page["turns"][0]
    expected = score(HOSTILE, output_tokens=12)
    assert first["score"]["overall"] == expected["overall"]
    marked = [HOSTILE[each["start"] : each["end"]] for each in first["score"]["evidence"]["spans"]]
    assert marked == [HOSTILE[span.start : span.end] for span in expected.evidence.spans]
    assert any("?" in text for text in marked)


async def test_a_page_of_turns_begins_where_it_is_told_to(client: httpx.AsyncClient, run: Run):
    page = (await client.get(f"/runs/{run.run_id}/turns?offset=1&limit=1")).json()

    assert [turn["turn"] for turn in page["turns"]] == [2]
    assert (page["total"], page["offset"]) == (2, 1)
    assert (await client.get(f"/runs/{run.run_id}/turns?offset=9")).json()["turns"] == []
    assert (await client.get(f"/runs/{run.run_id}/turns?limit=0")).status_code == 422


async def test_a_failed_run_has_no_score_and_says_why(client: httpx.AsyncClient, store: SqlStore):
    planned = experiment(tutors(2))
    await store.register(planned)
    run = next(planned.runs())
    failure = a_failure(run)
    await store.record_failures([RecordedFailure(failure, 0)])

    summary = (await client.get(f"/runs/{run.run_id}/summary")).json()

    assert summary["scores"] == {"overall": None}
    assert summary["turns"] == 0
    assert summary["failure"]["kind"] == failure.kind
    assert summary["attempts"] == summary["failure"]["attempts"] == failure.attempts > 0
    assert (await client.get(f"/runs/{run.run_id}/turns")).json()["turns"] == []


async def test_an_answer_that_has_not_changed_is_not_sent_again(
    client: httpx.AsyncClient, run: Run
):
    address = f"/runs/{run.run_id}/summary"
    etag = (await client.get(address)).headers["etag"]

    assert (await client.get(address, headers={"If-None-Match": etag})).status_code == 304


async def test_an_unknown_run_is_a_problem(client: httpx.AsyncClient):
    ids = {"run-nowhere": 404, "%00": 422, "a" * 300: 422, "%27%20OR%201=1": 404}
    for run_id, part in product(ids, ("summary", "turns")):
        answer = await client.get(f"/runs/{run_id}/{part}")
        assert answer.status_code == ids[run_id], (run_id, part)
        assert answer.headers["content-type"] == "application/problem+json", (run_id, part)


async def test_a_page_of_long_turns_ends_early_and_names_the_next(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(2))
    await store.register(planned)
    run = next(planned.runs())
    # In JSON, each line break takes two bytes.
    texts = [f"{number}\n" * 200_000 for number in range(10)]
    turns = [
        a_response(run, text, turn=turn, last_turn=turn == len(texts))
        for turn, text in enumerate(texts, 1)
    ]
    await store.record(turns, [None] * len(turns))

    found, offset = [], 0
    while offset is not None:
        answer = await client.get(f"/runs/{run.run_id}/turns?limit=100&offset={offset}")
        assert len(answer.content) < MOST_BYTES
        page = answer.json()
        assert 1 < len(page["turns"]) < len(texts)
        assert page["total"] == len(texts)
        found += [turn["text"] for turn in page["turns"]]
        offset = page["next_offset"]

    assert found == texts


def test_a_page_has_an_entry_even_if_that_does_not_fit() -> None:
    entries = [RunFailed(turn=1, kind="auth", message="x" * size, attempts=1) for size in (90, 10)]
    assert page_within(iter(entries), 100) == (entries[0],)
    assert page_within(entries, 1_000) == tuple(entries)
    assert page_within([], 1_000) == ()
    assert [next_offset(4, 2, total) for total in (5, 6, 7)] == [None, None, 6]
    assert next_offset(9, 0, 6) is None
