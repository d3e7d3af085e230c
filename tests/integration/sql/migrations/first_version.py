"""A database as the first version of the schema had it, with an experiment that was under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from socratic_bench.adapters.stores.records import microseconds, record_of
from socratic_bench.adapters.stores.sql import migrations
from socratic_bench.adapters.stores.sql.database import Backend
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.ports.stores.leases import CallCount, Spending
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment, claim_of

EXPERIMENT = an_experiment(budget=50)
ANSWERED, HELD, FREE, *_ = EXPERIMENT.runs()


async def make(backend: Backend) -> None:
    """Make the database, with one response, and two calls by `old`."""
    await asyncio.to_thread(backend.migrate, _make)


def _make(connection: Connection) -> None:
    upgrade_to(connection, "0001")
    connection.execute(
        text(
            "INSERT INTO experiments (experiment_id, manifest, profile, planned_runs, "
            "created_at, revision) VALUES (:id, :manifest, :profile, 12, :at, 1)"
        ),
        {
            "id": EXPERIMENT.experiment_id,
            "manifest": record_of(EXPERIMENT.manifest.model_copy(update={"budget": None})),
            "profile": EXPERIMENT.manifest.profile,
            "at": microseconds(MONDAY),
        },
    )
    connection.execute(
        text("INSERT INTO responses (run_id, turn, record) VALUES (:id, 1, :record)"),
        {"id": ANSWERED.run_id, "record": record_of(a_response(ANSWERED, cost=5))},
    )
    for run in (ANSWERED, HELD):
        connection.execute(
            text(
                "INSERT INTO calls (experiment_id, run_id, turn, calls, owner, leased_until) "
                "VALUES (:experiment, :run, 1, 1, 'old', :until)"
            ),
            {
                "experiment": EXPERIMENT.experiment_id,
                "run": run.run_id,
                "until": microseconds(MONDAY + MINUTE),
            },
        )


def upgrade_to(connection: Connection, revision: str) -> None:
    """Make the tables as an earlier version had them."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


async def assert_it_goes_on(store: Store) -> None:
    """Assert that nothing is lost, and that new calls are counted and kept within a new budget.

    `old` took its leases long ago, by the clock of the store.
    """
    id_ = EXPERIMENT.experiment_id
    assert await store.spending(id_) == Spending(None, 0, 0, exhausted=False, paid=5)
    assert await store.calls(id_) == CallCount(calls=2, turns=2)
    assert (await store.register(EXPERIMENT)).manifest == EXPERIMENT.manifest
    claims = [claim_of(run, "new", 30) for run in (ANSWERED, HELD, FREE)]
    assert list(await store.take_leases(claims, "new")) == [
        LeaseAnswer.ANSWERED,
        LeaseAnswer.GRANTED,
        LeaseAnswer.OVER_BUDGET,
    ]
    await store.record([a_response(HELD, cost=20)], ["new"])
    assert await store.spending(id_) == Spending(50, 20, 0, exhausted=False, paid=25)
    stored = await store.unscored_responses(id_, 10)
    assert {response.run for response in stored} == {ANSWERED, HELD}
