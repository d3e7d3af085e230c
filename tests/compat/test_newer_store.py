"""This version works on a database that a newer version has written to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.results.verification import verify
from tests.compat import newer_version
from tests.compat.newer_version import (
    ANSWERED,
    EXPERIMENT,
    FAILED,
    NEW_TURN,
    UNFOLDED,
    UNREADABLE,
    UNREADABLE_RUN,
    UNSCORED,
)
from tests.contract.store.facts import a_failure, a_response, a_score, failures_in, record_unleased
from tests.e2e.command import Terminal

ID = EXPERIMENT.experiment_id


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    await newer_version.make(tmp_path / "benchmark.db")
    return tmp_path / "benchmark.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(f"sqlite:///{path}")
    await store.prepare()
    yield store
    await store.close()


async def test_what_this_version_knows_of_each_fact_is_read(store: SqlStore) -> None:
    assert await store.experiment(ID) == EXPERIMENT
    assert await store.responses([ANSWERED.run_id]) == {ANSWERED.run_id: [a_response(ANSWERED)]}
    assert [page async for page in store.score_rows(ID)] == [[a_score(ANSWERED)]]
    assert await failures_in(store, ID) == [a_failure(FAILED)]
    assert await store.recorded_failures([FAILED.run_id]) == {
        FAILED.run_id: RecordedFailure(a_failure(FAILED), retry=0)
    }
    assert await store.unscored_responses(ID, 10) == [a_response(UNSCORED)]
    assert await store.unfolded_failures(ID, 10) == [a_failure(UNFOLDED)]
    assert [each.experiment_id for each in await store.running()] == [ID]
    assert sum(cell.responses for cell in await store.cells([ID])) == 2
    assert await verify(store, ID) == []


async def test_a_row_that_cannot_be_read_hides_no_other_and_is_named(store: SqlStore) -> None:
    with capture_logs() as logs:
        assert await store.experiments() == [EXPERIMENT]
        assert len(await store.cells()) == 2
        assert [len(page) async for page in store.score_rows(ID)] == [1]
        assert len(await failures_in(store, ID)) == 1
        assert len((await store.responses([ANSWERED.run_id]))[ANSWERED.run_id]) == 1
        assert len(await store.recorded_failures([FAILED.run_id, UNREADABLE_RUN])) == 1
    named = {line["table"]: " ".join(line["unreadable"]) for line in logs}
    assert {line["log_level"] for line in logs} == {"warning"}
    assert named.pop("failures").endswith("of-a-later-version")
    assert named.pop("experiments") == UNREADABLE
    assert named.pop("failed_runs") == UNREADABLE_RUN
    assert named.keys() == {"cells", "scores", "responses"}
    assert all(str(NEW_TURN) in key.split() for key in named.values())


async def test_a_row_that_cannot_be_read_keeps_nothing_from_being_healed(store: SqlStore) -> None:
    with capture_logs() as logs:
        assert len(await store.running()) == 1
        assert len(await store.unscored_responses(ID, 10)) == 1
        assert len(await store.unfolded_failures(ID, 10)) == 1
    named = {line["table"]: " ".join(line["unreadable"]) for line in logs}
    assert named["experiments"] == UNREADABLE
    assert named["responses"] == f"{UNSCORED.run_id} {NEW_TURN}"
    assert named["failed_runs"] == UNREADABLE_RUN


async def test_asking_for_a_row_that_cannot_be_read_says_so(store: SqlStore) -> None:
    with pytest.raises(StoreError, match=f"experiments: .* row of {UNREADABLE}"):
        await store.experiment(UNREADABLE)
    with pytest.raises(StoreError, match=f"cells: .* row of {ID} .* {NEW_TURN} "):
        await store.fold([a_score(ANSWERED, turn=NEW_TURN)], [])


async def test_a_stored_turn_that_cannot_be_read_keeps_no_other_response_from_being_stored(
    store: SqlStore,
) -> None:
    beside = a_response(FAILED)
    with capture_logs() as logs:
        stored = await record_unleased(store, [a_response(ANSWERED, turn=NEW_TURN), beside])
    assert stored[1] == beside
    assert await store.responses([FAILED.run_id]) == {FAILED.run_id: [beside]}
    [left_out] = [line for line in logs if line["event"] == "rows left out"]
    assert list(left_out["unreadable"]) == [f"{ANSWERED.run_id} {NEW_TURN}"]


async def test_registering_again_keeps_the_fields_of_a_newer_version(
    store: SqlStore, path: Path
) -> None:
    before = newer_version.manifest(path)
    revision = await store.revision()
    await store.register(EXPERIMENT)
    assert await store.revision() == revision
    manifest = EXPERIMENT.manifest.model_copy(update={"budget": Decimal(7)})
    stored = await store.register(Experiment(manifest=manifest, created_at=EXPERIMENT.created_at))
    assert stored.manifest == manifest
    assert newer_version.manifest(path) == {**before, "budget": "7"}
    assert await store.revision() != revision


async def test_an_experiment_that_cannot_be_read_is_not_registered_over(store: SqlStore) -> None:
    unreadable = EXPERIMENT.model_copy(update={"experiment_id": UNREADABLE})
    with pytest.raises(StoreError, match=UNREADABLE):
        await store.register(unreadable)
    with pytest.raises(StoreError, match=UNREADABLE):
        await store.experiment(UNREADABLE)


async def test_an_experiment_keeps_the_name_that_it_is_stored_under(store: SqlStore) -> None:
    other = EXPERIMENT.model_copy(
        update={"experiment_id": "exp-of-a-plan-with-more", "created_at": EXPERIMENT.created_at}
    )
    stored = await store.register(other)
    assert stored.experiment_id == "exp-of-a-plan-with-more"
    assert {run.experiment_id for run in stored.runs()} == {"exp-of-a-plan-with-more"}
    assert EXPERIMENT.understood
    assert not stored.understood
    assert stored.conditions_id != EXPERIMENT.conditions_id == EXPERIMENT.manifest.conditions_id


def test_the_commands_answer(path: Path) -> None:
    terminal = Terminal(path.parent)
    for words in (["status"], ["verify"], ["leaderboard"]):
        done = terminal.run(*words)
        assert done.returncode == 0
        assert "rows left out" in done.stderr
    table = json.loads(terminal.run("leaderboard", "--format", "json").stdout)
    assert [model["scored_responses"] for model in table["models"]] == [1, 0]


async def test_the_api_answers(store: SqlStore) -> None:
    app = build_app(store, ApiSettings(freshness_ms=0))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        for path in ("model-comparison", f"model-comparison?experiment={ID}", "cost-analysis"):
            answer = await client.get(f"/api/{path}")
            assert answer.status_code == 200
            assert len(answer.json()["models"]) == 2
        listed = (await client.get("/api/experiments")).json()
        assert [each["experiment_id"] for each in listed["experiments"]] == [ID]
