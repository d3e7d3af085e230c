"""A runner leaves plans and data of a newer version alone, and calls no model for them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.outcomes import Handled, Postponed
from socratic_runner.conversations import conversation_runner
from socratic_runner.handling.request_sorting import NEWER_SECONDS
from tests.servers.sqlite import prepared_file
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    ONE,
    THREE,
    ScriptedClient,
    carry_out,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)

NEWER = EXPERIMENT.model_copy(update={"experiment_id": "exp-of-more-fields"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "benchmark.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(await prepared_file(path))
    await store.register(EXPERIMENT)
    await store.register(NEWER)
    yield store
    await store.close()


def change(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement, parameters).rowcount == 1
        connection.commit()


@pytest.mark.parametrize("readable", [True, False])
async def test_runs_of_an_experiment_that_is_not_understood_are_put_back(
    store: SqlStore, path: Path, readable: bool
) -> None:
    if not readable:
        statement = "UPDATE experiments SET manifest = '{}' WHERE experiment_id = ?"
        change(path, statement, NEWER.experiment_id)
    client = ScriptedClient(lambda *_: reply())
    newer, known = requested(next(NEWER.runs())), requested(ONE)
    async with parts_of_a_runner(store, client) as parts:
        with capture_logs() as logs:
            outcomes = await outcomes_of(parts.handler, newer, known)
    put_back = outcomes[newer]
    assert isinstance(put_back, Postponed)
    assert put_back.after == NEWER_SECONDS
    assert NEWER.experiment_id in put_back.reason
    assert isinstance(outcomes[known], Handled)
    assert [question.run for question in client.asked] == [ONE]
    [line] = [line for line in logs if line["event"] == "runs are left to a newer version"]
    assert line["correlation_id"] == NEWER.experiment_id


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_turn_whose_response_cannot_be_read_is_not_asked_again(
    store: SqlStore, path: Path, monkeypatch: pytest.MonkeyPatch, turn: int, at_once: bool
) -> None:
    monkeypatch.setattr(conversation_runner, "HELD_PAUSE", 0.0)
    await carry_out(store, ScriptedClient(lambda *_: reply()), THREE)
    unreadable = "UPDATE responses SET record = '{}' WHERE run_id = ? AND turn = ?"
    change(path, unreadable, THREE.run_id, turn)
    change(path, "DELETE FROM responses WHERE run_id = ? AND turn = 3", THREE.run_id)
    client, work = ScriptedClient(lambda *_: reply()), requested(THREE)
    client.answers_at_once = at_once
    async with parts_of_a_runner(store, client) as parts:
        outcomes = await outcomes_of(parts.handler, work)
    reason = "this version cannot read the stored response of this turn"
    assert outcomes == {work: Postponed(work, 1.0, reason)}
    assert client.asked == []
