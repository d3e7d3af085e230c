"""A change of state on PostgreSQL returns once everything is over that has not seen it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Executable

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.adapters import opened
from tests.contract.store.facts import (
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    record_unleased,
)
from tests.servers import postgresql
from tests.waiting import until, waiting_for

pytestmark = pytest.mark.connected

SILENCE = 0.3
"""Seconds in which an unneeded wait would have ended."""


@pytest.fixture
async def store() -> AsyncIterator[SqlStore]:
    async with (
        postgresql.prepared_database() as url,
        opened(lambda: SqlStore.from_url(url)) as store,
    ):
        yield store


@pytest.fixture
async def experiment(store: SqlStore) -> Experiment:
    return await store.register(an_experiment())


@contextmanager
def held_up(
    after: Executable, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Hold up the next transaction right after a statement; gives `reached` and `go_on`."""
    reached, go_on = asyncio.Event(), asyncio.Event()
    execute = Transaction.execute

    async def hold_up(self: Transaction, statement: Executable, parameters: Any = None) -> Any:
        rows = await execute(self, statement, parameters)
        if statement is after and not reached.is_set():
            reached.set()
            await go_on.wait()
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "execute", hold_up)
        try:
            yield reached, go_on
        finally:
            go_on.set()


async def _changes_beside(
    store: SqlStore,
    experiment: Experiment,
    to: ExperimentState,
    work: Callable[[], Awaitable[Any]],
    after: Executable,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """What `work` gives, which is held up after a statement while the state is changed."""
    id_ = experiment.experiment_id
    with held_up(after, monkeypatch) as (reached, go_on):
        working = asyncio.ensure_future(work())
        await reached.wait()
        changing = asyncio.create_task(store.change_state(id_, to))
        await until(lambda: store.states([id_]), lambda it: it == {id_: to}, "the change")
        _, waiting = await asyncio.wait({changing}, timeout=SILENCE)
        assert waiting, "it has returned while somebody goes on who has not seen it"
        go_on.set()
        async with waiting_for("both"):
            await changing
            return await working


@pytest.mark.parametrize(
    "to", [ExperimentState.PAUSED, pytest.param(ExperimentState.CANCELLED, marks=pytest.mark.long)]
)
async def test_it_returns_once_the_last_lease_is_granted(
    store: SqlStore, experiment: Experiment, to: ExperimentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, later, *_ = experiment.runs()
    answers = await _changes_beside(
        store,
        experiment,
        to,
        lambda: store.take_leases([claim_of(before, "before")], "runner"),
        store._statements.experiments.hold_open,
        monkeypatch,
    )
    assert answers == [LeaseAnswer.GRANTED]
    assert (await store.calls(experiment.experiment_id)).calls == 1
    refused = await store.take_leases([claim_of(later, "later")], "runner")
    assert refused == [LeaseAnswer.STOPPED]


@pytest.mark.parametrize(
    "kind",
    ["response", *(pytest.param(each, marks=pytest.mark.long) for each in ("score", "failure"))],
)
async def test_what_is_being_stored_while_it_is_deleted_goes_with_the_rest(
    store: SqlStore, experiment: Experiment, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, *_ = experiment.runs()
    work: dict[str, Callable[[], Awaitable[Any]]] = {
        "response": lambda: record_unleased(store, [a_response(run)]),
        "score": lambda: store.fold([a_score(run)], []),
        "failure": lambda: store.record_failures([RecordedFailure(a_failure(run), 0)]),
    }
    await _changes_beside(
        store,
        experiment,
        ExperimentState.DELETED,
        work[kind],
        store._statements.experiments.hold_kept,
        monkeypatch,
    )
    while await store.delete_rows(experiment.experiment_id):
        pass
    assert await store.deletable(None) == []
    assert await store.responses([run.run_id]) == {}
    assert await store.recorded_failures([run.run_id]) == {}


async def test_a_change_waits_for_nobody_of_another_experiment(
    store: SqlStore, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await store.register(an_experiment(occasion="other"))
    run, *_ = other.runs()
    with held_up(store._statements.experiments.hold_open, monkeypatch) as (reached, go_on):
        working = asyncio.ensure_future(store.take_leases([claim_of(run, "lease")], "runner"))
        await reached.wait()
        async with waiting_for("the change of state"):
            await store.change_state(experiment.experiment_id, ExperimentState.CANCELLED)
        go_on.set()
        assert await working == [LeaseAnswer.GRANTED]
