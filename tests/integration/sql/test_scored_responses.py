"""The view `scored_responses` has a row with plain columns for each score."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.adapters import opened
from tests.contract.store.facts import (
    MONDAY,
    a_response,
    a_score,
    an_experiment,
    an_unscored,
    record_unleased,
)
from tests.servers import postgresql

EVERYTHING = "SELECT * FROM scored_responses ORDER BY overall"
TEXT = 'Why?\n"NUL" stands here: \0 and “this” is 🙂'
"""PostgreSQL's own texts cannot hold NUL, and SQLite's functions end a text there."""

PLAN = an_experiment(occasion="2026-W10")


async def _fill(url: str) -> None:
    """Store an experiment with a scored, a refused and an unscored response, and a failed run."""
    scored, refused, waiting, *_ = PLAN.runs()
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.register(PLAN)
        responses = [a_response(scored, TEXT), a_response(refused, "No."), a_response(waiting)]
        await record_unleased(store, responses)
        await store.fold([a_score(scored), an_unscored(refused)], [])


def _assert_it_is_read(rows: list[dict[str, Any]]) -> None:
    of_scored, of_refused = sorted(rows, key=lambda row: row["status"])
    scored, refused, *_ = PLAN.runs()
    assert of_refused["run_id"] == refused.run_id
    assert of_refused["status"] == "refused"
    assert of_refused["overall"] is None
    del of_scored["created_at"]
    assert of_scored == {
        "experiment_id": PLAN.experiment_id,
        "experiment": None,
        "occasion": "2026-W10",
        "profile": "socratic-v1",
        "model_id": scored.model_id,
        "scenario_id": scored.scenario_id,
        "dimension": scored.dimension,
        "repeat": 1,
        "turn": 1,
        "status": "ok",
        "verbosity": 0.976,
        "exploratory": 0.25,
        "interrogative": 1.0,
        "overall": 0.75,
        "vectors": '{"verbosity":0.976,"exploratory":0.25,"interrogative":1.0}',
        "student_message": "My startup is not growing. What should I do?",
        "text": TEXT.replace("\0", "\N{REPLACEMENT CHARACTER}"),
        "input_tokens": 80,
        "visible_output_tokens": 12,
        "reasoning_tokens": 3,
        "latency_ms": 740,
        "cost_usd": 0.000021,
        "stop_reason": "end_turn",
        "model_version": "tutor-2026-01",
        "recorded_at": MONDAY.isoformat().replace("+00:00", "Z"),
        "adopted_from": None,
        "run_id": scored.run_id,
    }


async def test_sqlite_has_a_row_for_each_score(tmp_path: Path) -> None:
    await _fill(f"sqlite:///{tmp_path}/benchmark.db")
    with closing(sqlite3.connect(tmp_path / "benchmark.db")) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(EVERYTHING)]
    assert {row["created_at"] for row in rows} == {f"{MONDAY:%Y-%m-%dT%H:%M:%SZ}"}
    _assert_it_is_read(rows)


@pytest.mark.connected
async def test_postgresql_has_a_row_for_each_score(url: str) -> None:
    await _fill(url)
    rows = [dict(row) for row in await postgresql.execute(url, EVERYTHING)]
    assert {row["created_at"] for row in rows} == {MONDAY}
    _assert_it_is_read(rows)
