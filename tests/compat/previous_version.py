"""The statements of the version whose newest migration is 0002, row by row.

Processes of that version go on while another one migrates their database. These statements stay as
they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from socratic_bench.adapters.stores.conversations import KnownConversations
from socratic_bench.adapters.stores.sql.aggregate_statements import (
    row_of_cell,
    row_of_failure,
    row_of_score,
)
from socratic_bench.adapters.stores.sql.experiment_statements import (
    row_of_experiment,
    row_of_spending,
)
from socratic_bench.adapters.stores.sql.response_statements import row_of_response
from socratic_bench.domain.aggregates.cell import fold
from tests.contract.store.facts import a_failure, a_response, a_score, an_experiment

EXPERIMENT = an_experiment(budget=1_000)
ANSWERED, FAILED, *_ = EXPERIMENT.runs()
RESPONSE, SCORE, FAILURE = a_response(ANSWERED, cost=5), a_score(ANSWERED), a_failure(FAILED)
CELLS = fold([SCORE], [FAILURE])

REGISTER = """
INSERT INTO experiments
(experiment_id, manifest, occasion, profile, planned_runs, created_at, completed_at, revision)
VALUES (:experiment_id, :manifest, :occasion, :profile, :planned_runs, :created_at, :completed_at,
:revision) ON CONFLICT (experiment_id) DO UPDATE
SET manifest = excluded.manifest, revision = experiments.revision + 1
WHERE experiments.manifest != excluded.manifest
"""
SET_BUDGET = """
INSERT INTO spending (experiment_id, budget, committed, exhausted)
VALUES (:experiment_id, :budget, :committed, :exhausted)
ON CONFLICT (experiment_id) DO UPDATE SET budget = excluded.budget
"""
LEASE = """
INSERT INTO calls (experiment_id, run_id, turn, calls, owner, leased_until, reserved)
VALUES (:experiment_id, :run_id, 1, 1, 'previous', 1, :reserved)
ON CONFLICT (experiment_id, run_id, turn) DO UPDATE SET calls = calls.calls + 1,
owner = excluded.owner, leased_until = excluded.leased_until, reserved = excluded.reserved
WHERE calls.owner = excluded.owner OR calls.leased_until < 1
RETURNING calls.run_id, calls.turn
"""
END_RESERVATION = """
UPDATE calls SET reserved = 0
WHERE experiment_id = :experiment_id AND run_id = :run_id AND turn = 1
"""
ADD_COMMITTED = """
UPDATE spending SET committed = committed + :more WHERE experiment_id = :experiment_id
"""
RECORD = """
INSERT INTO responses (run_id, turn, record) VALUES (:run_id, :turn, :record)
ON CONFLICT DO NOTHING RETURNING run_id, turn
"""
INSERT_SCORE = """
INSERT INTO scores (experiment_id, run_id, turn, profile, last_turn, record)
VALUES (:experiment_id, :run_id, :turn, :profile, :last_turn, :record)
ON CONFLICT DO NOTHING RETURNING experiment_id, run_id, turn, profile
"""
INSERT_FAILURE = """
INSERT INTO failures (experiment_id, run_id, profile, counted, record)
VALUES (:experiment_id, :run_id, :profile, :counted, :record)
"""
WRITE_CELL = """
INSERT INTO cells (experiment_id, model_id, scenario_id, turn, profile, dimension, responses,
runs_ended, revision, record)
VALUES (:experiment_id, :model_id, :scenario_id, :turn, :profile, :dimension, :responses,
:runs_ended, :revision, :record)
ON CONFLICT (experiment_id, model_id, scenario_id, turn, profile) DO UPDATE SET
responses = excluded.responses, runs_ended = excluded.runs_ended, record = excluded.record,
revision = cells.revision + 1
"""
TAKE_LIMIT = """
INSERT INTO limits (scope, total) VALUES ('calls/a', 4)
ON CONFLICT (scope) DO UPDATE SET total = excluded.total
"""
WRITE_SHARE = """
INSERT INTO shares (scope, owner, parts, wants, held_until) VALUES ('calls/a', 'previous', 2, 2, 1)
ON CONFLICT (scope, owner) DO UPDATE SET parts = excluded.parts, wants = excluded.wants,
held_until = excluded.held_until
"""
COMPLETE = """
UPDATE experiments SET completed_at = 1, revision = revision + 1
WHERE experiment_id = :experiment_id AND completed_at IS NULL RETURNING experiment_id
"""

READS = (
    (
        "SELECT manifest, occasion, created_at, completed_at FROM experiments "
        "ORDER BY created_at DESC, experiment_id"
    ),
    "SELECT planned_runs, profile FROM experiments WHERE experiment_id = :experiment_id",
    "SELECT record FROM responses WHERE run_id = :run_id ORDER BY run_id, turn",
    (
        "SELECT run_id, turn, profile, record FROM scores WHERE experiment_id = :experiment_id "
        "AND (run_id, turn, profile) > ('', 0, '') ORDER BY run_id, turn, profile LIMIT 500"
    ),
    "SELECT record FROM failures WHERE experiment_id = :experiment_id AND counted",
    (
        "SELECT experiment_id, model_id, scenario_id, turn, profile, dimension, record FROM cells "
        "WHERE responses > 0 ORDER BY experiment_id, model_id, scenario_id, turn, profile"
    ),
    "SELECT budget, committed, exhausted FROM spending WHERE experiment_id = :experiment_id",
    (
        "SELECT calls, owner, leased_until, reserved FROM calls "
        "WHERE experiment_id = :experiment_id AND run_id = :run_id"
    ),
    "SELECT scope, owner, parts, wants, held_until FROM shares WHERE scope = 'calls/a'",
)
"""Each finds what `write` has written."""

KEYS = {"experiment_id": EXPERIMENT.experiment_id, "run_id": ANSWERED.run_id}


def write(connection: Connection) -> None:
    """Plan, call, answer, score and fold, as that version does it, and read it again."""
    steps: list[tuple[str, Mapping[str, Any]]] = [
        (REGISTER, row_of_experiment(EXPERIMENT)),
        (SET_BUDGET, row_of_spending(EXPERIMENT)),
        (LEASE, {**KEYS, "reserved": 30}),
        (ADD_COMMITTED, {**KEYS, "more": 30}),
        (RECORD, row_of_response(RESPONSE, KnownConversations())),
        (END_RESERVATION, KEYS),
        (ADD_COMMITTED, {**KEYS, "more": 5 - 30}),
        (INSERT_SCORE, row_of_score(SCORE)),
        (INSERT_FAILURE, row_of_failure(FAILURE, counted=True)),
        *((WRITE_CELL, row_of_cell(cell)) for cell in CELLS.values()),
        (TAKE_LIMIT, {}),
        (WRITE_SHARE, {}),
    ]
    for statement, parameters in steps:
        connection.execute(text(statement), parameters)
    for statement in READS:
        assert connection.execute(text(statement), KEYS).all(), statement


def complete(connection: Connection) -> None:
    """Complete the experiment, as that version does it."""
    assert connection.execute(text(COMPLETE), KEYS).all()
