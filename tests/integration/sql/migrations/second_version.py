"""A database with the second version of the schema, and the next steps of its runners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, text

from socratic_bench.adapters.stores.records import microseconds, record_of
from socratic_bench.adapters.stores.sql.database import Backend
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.leases import CallCount, ModelInHand, Spending
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    MINUTE,
    MONDAY,
    StoppedClock,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
)
from tests.integration.sql.migrations.first_version import upgrade_to

EXPERIMENT = an_experiment(budget=100)
ANSWERED, HELD, RUN_OUT, FREE, LATE, *_ = EXPERIMENT.runs()
ID = EXPERIMENT.experiment_id

LEASE = """
INSERT INTO calls (experiment_id, run_id, turn, calls, owner, leased_until, reserved)
VALUES (:experiment_id, :run_id, 1, 1, 'old', :until, :reserved)
"""
RECORD = "INSERT INTO responses (run_id, turn, record) VALUES (:run_id, 1, :record)"


def _experiment() -> Mapping[str, Any]:
    return {
        "id": ID,
        "manifest": record_of(EXPERIMENT.manifest),
        "profile": EXPERIMENT.manifest.profile,
        "at": microseconds(MONDAY),
    }


def _lease(run: Run, minutes: int, reserved: int) -> Mapping[str, Any]:
    until = microseconds(MONDAY + minutes * MINUTE)
    return {"experiment_id": ID, "run_id": run.run_id, "until": until, "reserved": reserved}


def _response(run: Run) -> Mapping[str, Any]:
    response = a_response(run, "Is \u0000 a letter?", cost=5)
    return {"run_id": run.run_id, "record": record_of(response)}


async def make(backend: Backend) -> None:
    """Make the database, with one response, and three calls by `old`."""

    def fill(connection: Connection) -> None:
        upgrade_to(connection, "0002")
        connection.execute(
            text(
                "INSERT INTO experiments (experiment_id, manifest, profile, planned_runs, "
                "created_at, revision) VALUES (:id, :manifest, :profile, 12, :at, 1)"
            ),
            _experiment(),
        )
        connection.execute(
            text("INSERT INTO spending VALUES (:id, 100, 75, FALSE)"), {"id": ID}
        )  # 5 for the response, and what is reserved
        for lease in (_lease(ANSWERED, 1, 0), _lease(HELD, 1, 30), _lease(RUN_OUT, -1, 40)):
            connection.execute(text(LEASE), lease)
        connection.execute(text(RECORD), _response(ANSWERED))

    await _do(backend, fill)


async def _do(backend: Backend, work: Callable[[Connection], None]) -> None:
    await asyncio.to_thread(backend.migrate, work)


async def assert_it_goes_on(store: Store, backend: Backend, clock: StoppedClock) -> None:
    """Assert that all rows are there and that leases keep their durations and reservations."""
    assert await store.spending(ID) == Spending(100, 75, 30, exhausted=False, paid=5)
    assert await store.calls(ID) == CallCount(calls=3, turns=3)
    assert [response.run for response in await store.unscored_responses(ID, 10)] == [ANSWERED]
    [running] = await store.running()
    assert (running.experiment_id, running.planned_at) == (ID, None)
    await _new_runners_go_on(store, clock)
    await _old_runners_go_on(store, backend)
    await store.record_failures([RecordedFailure(a_failure(FREE), 0)])
    await store.fold([a_score(run) for run in EXPERIMENT.runs()], [])
    assert await store.complete(ID, MONDAY) == MONDAY


async def _new_runners_go_on(store: Store, clock: StoppedClock) -> None:
    runs = ANSWERED, HELD, RUN_OUT, FREE
    answers = await store.take_leases([claim_of(run, "new", 20) for run in runs], "new")
    assert list(answers) == [
        LeaseAnswer.ANSWERED,
        LeaseAnswer.HELD,
        LeaseAnswer.GRANTED,
        LeaseAnswer.OVER_BUDGET,
    ]
    await store.record([a_response(RUN_OUT, cost=1)], ["new"])
    assert await store.spending(ID) == Spending(100, 76, 30, exhausted=False, paid=6)
    clock.pass_by(61)
    assert list(await store.take_leases([claim_of(HELD, "new", 20)], "new")) == [
        LeaseAnswer.GRANTED
    ]
    await store.record([a_response(HELD, cost=1)], ["new"])
    assert await store.spending(ID) == Spending(100, 77, 0, exhausted=False, paid=7)


async def _old_runners_go_on(store: Store, backend: Backend) -> None:
    """They know nothing of the new columns, and of who is alive."""

    def lease_and_record(connection: Connection) -> None:
        connection.execute(text(LEASE), _lease(LATE, 9, 0))
        connection.execute(text(RECORD), _response(LATE))

    await store.heartbeat("new", [ModelInHand(ID, LATE.model_id)])
    await _do(backend, lease_and_record)
    await store.leave_others("new")
    late = [claim_of(LATE, "new")]
    assert list(await store.take_leases(late, "new")) == [LeaseAnswer.ANSWERED]
    stored = await store.unscored_responses(ID, 10)
    assert {response.run for response in stored} == {ANSWERED, RUN_OUT, HELD, LATE}
