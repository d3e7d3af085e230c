"""The rows of a conversation hold each turn once; a missing row is an error that names it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.records import record_of
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.scoring.exchange import EarlierTurn, Status
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_conversation, a_response, a_run, record_unleased

RUN_ID = a_run().run_id
TURNS = a_conversation(a_run(), turns=12, words=300)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")) as store:
        yield store


@pytest.fixture
def rows(tmp_path: Path, store: SqlStore) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "benchmark.db")) as connection:
        yield connection


def _sizes(rows: sqlite3.Connection) -> list[int]:
    found = rows.execute("SELECT length(record) FROM responses ORDER BY turn")
    return [size for (size,) in found]


async def test_a_row_grows_with_its_own_turn_alone(
    store: SqlStore, rows: sqlite3.Connection
) -> None:
    for response in TURNS:
        await record_unleased(store, [response])
    first, *later = _sizes(rows)
    assert max(later) < first + 100
    whole = sum(len(record_of(response)) for response in TURNS)
    assert whole > 5 * (first + sum(later))


async def test_a_row_that_an_earlier_version_wrote_is_read_and_gone_on_from(
    store: SqlStore, rows: sqlite3.Connection
) -> None:
    await record_unleased(store, TURNS[:1])
    written = [(RUN_ID, response.turn, record_of(response)) for response in TURNS[1:5]]
    rows.executemany("INSERT INTO responses (run_id, turn, record) VALUES (?, ?, ?)", written)
    rows.commit()
    assert await store.responses([RUN_ID]) == {RUN_ID: TURNS[:5]}
    await record_unleased(store, [TURNS[5]])
    assert _sizes(rows)[5] < _sizes(rows)[1]
    assert await store.responses([RUN_ID]) == {RUN_ID: TURNS[:6]}


async def test_a_row_of_an_earlier_version_gets_the_statuses_of_its_turns_from_their_own_rows(
    store: SqlStore, rows: sqlite3.Connection
) -> None:
    first = TURNS[0].model_copy(update={"status": Status.REFUSED})
    await record_unleased(store, [first])
    said = EarlierTurn(first.student_message, first.text)
    old = TURNS[1].model_copy(update={"earlier_turns": (said,)})
    assert '"status":"refused"' not in record_of(old)
    rows.execute("INSERT INTO responses VALUES (?, 2, ?)", [RUN_ID, record_of(old)])
    rows.commit()
    [_, second] = (await store.responses([RUN_ID]))[RUN_ID]
    assert second.earlier_turns == (first.as_earlier_turn,)


async def test_a_turn_whose_earlier_rows_are_gone_is_named_and_never_made_up(
    store: SqlStore, rows: sqlite3.Connection
) -> None:
    for response in TURNS[:4]:
        await record_unleased(store, [response])
    rows.execute("DELETE FROM responses WHERE turn = 2")
    rows.commit()
    with capture_logs() as logs:
        assert await store.responses([RUN_ID]) == {RUN_ID: TURNS[:1]}
    [line] = logs
    assert line["unreadable"][f"{RUN_ID} 3"].endswith(
        "the row of its earlier turn 2 cannot be read"
    )
    assert line["unreadable"][f"{RUN_ID} 4"].endswith("turn 2 cannot be read")
    other_run = a_response(a_run(2))
    given = [TURNS[2], other_run]
    with capture_logs() as logs:
        assert await record_unleased(store, given) == given
    assert f"{RUN_ID} 3" in logs[0]["unreadable"]
    assert await store.responses([other_run.run.run_id]) == {other_run.run.run_id: [other_run]}

    other = TURNS[1].model_copy(update={"text": "You should wait."})
    rows.execute("INSERT INTO responses VALUES (?, 2, ?)", [RUN_ID, record_of(other)])
    rows.commit()
    with capture_logs() as logs:
        assert await store.responses([RUN_ID]) == {RUN_ID: [TURNS[0], other]}
    assert "are not those that came before it" in logs[0]["unreadable"][f"{RUN_ID} 3"]


async def test_an_earlier_version_refuses_a_row_rather_than_score_it_without_its_turns(
    store: SqlStore, rows: sqlite3.Connection
) -> None:
    await record_unleased(store, TURNS[:2])
    [(record,)] = rows.execute("SELECT record FROM responses WHERE turn = 2").fetchall()
    assert isinstance(json.loads(record)["earlier_turns"], str)
    with pytest.raises(ValueError, match="earlier_turns"):
        type(TURNS[1]).model_validate_json(record)
