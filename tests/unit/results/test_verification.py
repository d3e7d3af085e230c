"""Cells against the rows they stand for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreUnavailable, UnknownExperiment
from socratic_bench.results.verification import verify
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from tests.dashboard.seeding import experiment, seed, tutors
from tests.servers.sqlite import prepared_file

PLANNED = experiment(tutors(3))
ID = PLANNED.experiment_id
CELL = "model_id = 'reference/lecturer' AND scenario_id = 'student-2'"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "benchmark.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(await prepared_file(database))
    yield store
    await store.close()


def tamper(database: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change one stored cell behind the store's back."""
    with closing(sqlite3.connect(database)) as connection, connection:
        [record] = connection.execute(f"SELECT record FROM cells WHERE {CELL}").fetchone()
        contents = json.loads(record)
        change(contents)
        connection.execute(f"UPDATE cells SET record = ? WHERE {CELL}", [json.dumps(contents)])


async def test_cells_that_are_the_fold_of_their_rows_show_no_difference(store: SqlStore):
    await seed(store, PLANNED, failing=0.2)

    assert await verify(store, ID) == []


async def test_a_failure_that_a_response_followed_is_no_difference(store: SqlStore):
    await store.register(PLANNED)
    run = next(PLANNED.runs())
    failure = RunFailure(
        run=run, turn=1, profile=CANONICAL, kind="timeout", message="late", attempts=1
    )
    response = ScoredResponse(
        run=run, turn=1, last_turn=True, profile=CANONICAL, status=Status.REFUSED
    )
    await store.fold((), [failure])
    await store.fold([response], ())

    assert await verify(store, ID) == []


async def test_rows_may_come_in_any_number_of_batches(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    await seed(store, PLANNED, failing=0.2)
    in_big_batches = store.score_rows

    async def in_batches_of_seven(experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        async for batch in in_big_batches(experiment_id):
            for start in range(0, len(batch), 7):
                yield batch[start : start + 7]

    monkeypatch.setattr(store, "score_rows", in_batches_of_seven)

    assert await verify(store, ID) == []


async def test_a_row_of_no_planned_run_is_named(store: SqlStore):
    await seed(store, PLANNED)
    run = next(PLANNED.runs()).model_copy(update={"repeat": 100_000, "run_id": "run-none"})
    scored = ScoredResponse(
        run=run, turn=1, last_turn=True, profile=CANONICAL, status=Status.REFUSED
    )
    failure = RunFailure(
        run=run, turn=7, profile=CANONICAL, kind="timeout", message="late", attempts=1
    )
    await store.fold([scored], [])
    await store.fold([], [failure])

    findings = await verify(store, ID)

    assert {str(finding).partition(": ")[2] for finding in findings} == {
        f"not in the plan: repeat 100000 of {PLANNED.manifest.repeats}"
    }
    assert all("run-none" in str(finding) for finding in findings)


async def test_a_sum_off_by_a_millionth_is_found_and_named(store: SqlStore, database: Path):
    await seed(store, PLANNED)

    def add_a_millionth(contents: dict[str, Any]) -> None:
        contents["vectors"]["overall"][1] += 1

    tamper(database, add_a_millionth)

    [difference] = await verify(store, ID)

    assert difference.cell.model_id == "reference/lecturer"
    assert difference.cell.scenario_id == "student-2"
    assert difference.figure == "vectors.overall"
    assert difference.stored[1] == difference.recomputed[1] + 1
    assert "student-2" in str(difference)


async def test_a_missing_cell_is_found(store: SqlStore, database: Path):
    await seed(store, PLANNED)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"DELETE FROM cells WHERE {CELL}")

    differences = await verify(store, ID)

    assert {each.cell.scenario_id for each in differences} == {"student-2"}
    assert all(each.stored is None for each in differences)
    assert "runs_ended" in {each.figure for each in differences}


async def test_a_cell_without_rows_is_found(store: SqlStore, database: Path):
    await seed(store, PLANNED, failing=0)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "DELETE FROM scores WHERE record LIKE '%reference/lecturer%' "
            "AND record LIKE '%student-2%'"
        )

    differences = await verify(store, ID)

    assert {each.cell.scenario_id for each in differences} == {"student-2"}
    assert all(each.recomputed is None for each in differences)


async def test_differences_in_a_store_that_keeps_changing_are_not_reported(
    store: SqlStore, database: Path, monkeypatch: pytest.MonkeyPatch
):
    await seed(store, PLANNED)
    tamper(database, lambda contents: contents.update(runs_ended=99))
    revisions = iter(range(1000))

    async def another_revision() -> str:
        return str(next(revisions))

    monkeypatch.setattr(store, "revision", another_revision)

    with pytest.raises(StoreUnavailable, match="written to"):
        await verify(store, ID)


async def test_an_experiment_that_is_not_there_is_an_error(store: SqlStore):
    with pytest.raises(UnknownExperiment, match="exp-nowhere"):
        await verify(store, "exp-nowhere")
