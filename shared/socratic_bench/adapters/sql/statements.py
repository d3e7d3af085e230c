"""Every statement of the SQL store, made once for a dialect.

They use what SQLite and PostgreSQL share. Whoever writes many rows gives them in the order of their
keys, so that two transactions never wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    EXPERIMENTS,
    FAILURES,
    RESPONSES,
    SCORES,
)

CHUNK = 500
"""How many keys a `SELECT` is given at a time, and how many rows a page has."""

_INSERTS: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}

Item = TypeVar("Item")


def chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """`items` in order, CHUNK at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


class Writes:
    """The statements for a dialect, `sqlite` or `postgresql`, whose `INSERT` minds conflicts.

    Their parameters are rows, by the names of their columns.
    """

    def __init__(self, dialect: str) -> None:
        insert = _INSERTS[dialect]

        def insert_new(table: Table) -> Any:
            return insert(table).on_conflict_do_nothing().returning(*table.primary_key)

        self.insert_responses = insert_new(RESPONSES)
        self.insert_scores = insert(SCORES)
        self.insert_failures = insert(FAILURES)

        experiment = insert(EXPERIMENTS)
        self.register = experiment.on_conflict_do_update(
            index_elements=list(EXPERIMENTS.primary_key),
            set_={
                "manifest": experiment.excluded.manifest,
                "revision": EXPERIMENTS.c.revision + 1,
            },
            where=EXPERIMENTS.c.manifest != experiment.excluded.manifest,
        )

        call = insert(CALLS)
        lease = call.on_conflict_do_update(
            index_elements=list(CALLS.primary_key),
            set_={
                "calls": CALLS.c.calls + 1,
                "owner": call.excluded.owner,
                "leased_until": call.excluded.leased_until,
            },
            where=or_(
                CALLS.c.owner == call.excluded.owner, CALLS.c.leased_until < bindparam("now")
            ),
        )
        self.lease = lease.returning(CALLS.c.run_id, CALLS.c.turn)

        # An update that changes nothing locks and returns a row that is there already.
        take_cells = insert(CELLS).on_conflict_do_update(
            index_elements=list(CELLS.primary_key), set_={"revision": CELLS.c.revision}
        )
        self.take_cells = take_cells.returning(
            *CELLS.primary_key, CELLS.c.dimension, CELLS.c.record
        )


UPDATE_CELL = (
    update(CELLS)
    .where(*(column == bindparam(f"at_{column.name}") for column in CELLS.primary_key))
    .values(
        responses=bindparam("responses"),
        runs_ended=bindparam("runs_ended"),
        record=bindparam("record"),
        revision=CELLS.c.revision + 1,
    )
)
"""Takes the parts of the key as `at_experiment_id` and so on."""

WITHDRAW_FAILURE = (
    update(FAILURES)
    .where(*(column == bindparam(f"at_{column.name}") for column in FAILURES.primary_key))
    .values(counted=False)
)

REPLACE_FAILURE = (
    update(FAILURES)
    .where(*(column == bindparam(f"at_{column.name}") for column in FAILURES.primary_key))
    .values(record=bindparam("record"))
)

COMPLETE = (
    update(EXPERIMENTS)
    .where(
        EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"),
        EXPERIMENTS.c.completed_at.is_(None),
    )
    .values(completed_at=bindparam("at"), revision=EXPERIMENTS.c.revision + 1)
    .returning(EXPERIMENTS.c.experiment_id)
)
"""Gives a row only if it was this that completed the experiment."""

_EXPERIMENT: BindParameter[str] = bindparam("experiment_id")
_EXPERIMENTS: BindParameter[Sequence[str]] = bindparam("experiment_ids", expanding=True)
_RUNS: BindParameter[Sequence[str]] = bindparam("run_ids", expanding=True)

LIST_EXPERIMENTS = select(
    EXPERIMENTS.c.manifest,
    EXPERIMENTS.c.occasion,
    EXPERIMENTS.c.created_at,
    EXPERIMENTS.c.completed_at,
).order_by(EXPERIMENTS.c.created_at.desc(), EXPERIMENTS.c.experiment_id)

FIND_EXPERIMENT = LIST_EXPERIMENTS.where(EXPERIMENTS.c.experiment_id == _EXPERIMENT)

PROGRESS = select(
    EXPERIMENTS.c.planned_runs,
    select(func.coalesce(func.sum(CELLS.c.runs_ended), 0))
    .where(CELLS.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(CELLS.c.profile == EXPERIMENTS.c.profile)
    .scalar_subquery(),
    select(func.count())
    .where(FAILURES.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(FAILURES.c.profile == EXPERIMENTS.c.profile, FAILURES.c.counted)
    .scalar_subquery(),
).where(EXPERIMENTS.c.experiment_id == _EXPERIMENT)
"""Planned, done and failed runs."""

REVISION = select(
    select(func.coalesce(func.sum(EXPERIMENTS.c.revision), 0)).scalar_subquery(),
    select(func.coalesce(func.sum(CELLS.c.revision), 0)).scalar_subquery(),
)

RESPONSES_OF_RUNS = (
    select(RESPONSES.c.record)
    .where(RESPONSES.c.run_id.in_(_RUNS))
    .order_by(RESPONSES.c.run_id, RESPONSES.c.turn)
)

RESPONSE_KEYS_OF_RUNS = select(*RESPONSES.primary_key).where(RESPONSES.c.run_id.in_(_RUNS))

CALLS_OF_EXPERIMENT = select(func.coalesce(func.sum(CALLS.c.calls), 0), func.count()).where(
    CALLS.c.experiment_id == _EXPERIMENT
)

SCORES_OF_RUNS = select(*SCORES.primary_key).where(
    SCORES.c.experiment_id.in_(_EXPERIMENTS), SCORES.c.run_id.in_(_RUNS)
)
"""The keys of their scores."""

ENDED_RUNS = select(SCORES.c.experiment_id, SCORES.c.run_id, SCORES.c.profile).where(
    SCORES.c.experiment_id.in_(_EXPERIMENTS), SCORES.c.run_id.in_(_RUNS), SCORES.c.last_turn
)
"""Runs with a score in their last turn, and under which profile."""

FAILURES_OF_RUNS = select(FAILURES.c.counted, FAILURES.c.record).where(
    FAILURES.c.experiment_id.in_(_EXPERIMENTS), FAILURES.c.run_id.in_(_RUNS)
)

HAS_FAILURES = select(FAILURES.c.run_id).where(FAILURES.c.experiment_id.in_(_EXPERIMENTS)).limit(1)

_OWN_PROFILE = (
    select(EXPERIMENTS.c.profile)
    .where(EXPERIMENTS.c.experiment_id == _EXPERIMENT)
    .scalar_subquery()
)

DONE_RUNS = union(
    select(SCORES.c.run_id).where(
        SCORES.c.experiment_id == _EXPERIMENT,
        SCORES.c.run_id.in_(_RUNS),
        SCORES.c.profile == _OWN_PROFILE,
        SCORES.c.last_turn,
    ),
    select(FAILURES.c.run_id).where(
        FAILURES.c.experiment_id == _EXPERIMENT,
        FAILURES.c.run_id.in_(_RUNS),
        FAILURES.c.profile == _OWN_PROFILE,
    ),
)

_SCORE_OF_RESPONSE = and_(
    SCORES.c.experiment_id == _EXPERIMENT,
    SCORES.c.run_id == RESPONSES.c.run_id,
    SCORES.c.turn == RESPONSES.c.turn,
    SCORES.c.profile == _OWN_PROFILE,
)

RUNS_TO_SCORE = (
    select(RESPONSES.c.run_id)
    .outerjoin_from(RESPONSES, SCORES, _SCORE_OF_RESPONSE)
    .where(RESPONSES.c.run_id.in_(_RUNS), SCORES.c.run_id.is_(None))
)
"""Runs with a stored response that has no score yet."""

LIST_CELLS = (
    select(*CELLS.primary_key, CELLS.c.dimension, CELLS.c.record)
    .where(CELLS.c.responses > 0)
    .order_by(*CELLS.primary_key)
)

LIST_CELLS_OF_EXPERIMENTS = LIST_CELLS.where(CELLS.c.experiment_id.in_(_EXPERIMENTS))

_PLACE = tuple_(bindparam("run_id"), bindparam("turn"), bindparam("profile"))

SCORE_PAGE = (
    select(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile, SCORES.c.record)
    .where(SCORES.c.experiment_id == _EXPERIMENT)
    .where(tuple_(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile) > _PLACE)
    .order_by(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile)
    .limit(CHUNK)
)
"""The scores of an experiment after a place in the order of their keys."""

LIST_FAILURES = (
    select(FAILURES.c.record)
    .where(FAILURES.c.experiment_id == _EXPERIMENT)
    .order_by(FAILURES.c.run_id, FAILURES.c.profile)
)
