"""The statements of the SQL store that are the same in every dialect, made once."""

from __future__ import annotations

from sqlalchemy import BindParameter, bindparam, exists, func, select, tuple_, update

from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    EXPERIMENTS,
    FAILURES,
    HAS_RESERVATION,
    RESPONSES,
    SCORES,
    SPENDING,
)

PAGE = 500
"""How many rows a page has."""

_EXPERIMENT: BindParameter[str] = bindparam("experiment_id")

LIST_EXPERIMENTS = select(
    EXPERIMENTS.c.manifest,
    EXPERIMENTS.c.occasion,
    EXPERIMENTS.c.created_at,
    EXPERIMENTS.c.completed_at,
).order_by(EXPERIMENTS.c.created_at.desc(), EXPERIMENTS.c.experiment_id)

FIND_EXPERIMENT = LIST_EXPERIMENTS.where(EXPERIMENTS.c.experiment_id == _EXPERIMENT)

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

CALLS_OF_EXPERIMENT = select(func.coalesce(func.sum(CALLS.c.calls), 0), func.count()).where(
    CALLS.c.experiment_id == _EXPERIMENT, CALLS.c.calls > 0
)

_ANSWERED = exists().where(RESPONSES.c.run_id == CALLS.c.run_id, RESPONSES.c.turn == CALLS.c.turn)

FIND_SPENDING = select(
    SPENDING.c.budget,
    SPENDING.c.committed,
    select(func.coalesce(func.sum(CALLS.c.reserved), 0))
    .where(CALLS.c.experiment_id == SPENDING.c.experiment_id, HAS_RESERVATION)
    .where(CALLS.c.leased_until >= bindparam("now"), ~_ANSWERED)
    .scalar_subquery(),
    SPENDING.c.exhausted,
).where(SPENDING.c.experiment_id == _EXPERIMENT)
"""Budget, committed, in flight, exhausted. What was reserved for a call whose response does not say
what it cost stays reserved, but is not in flight any more."""

ADD_COMMITTED = (
    update(SPENDING)
    .where(SPENDING.c.experiment_id == bindparam("at_experiment_id"))
    .values(committed=SPENDING.c.committed + bindparam("more"))
)

EXHAUST = (
    update(SPENDING)
    .where(SPENDING.c.experiment_id == bindparam("at_experiment_id"))
    .where(SPENDING.c.budget.is_not(None))
    .values(exhausted=True)
)

WITHDRAW_FAILURE = (
    update(FAILURES)
    .where(*(column == bindparam(f"at_{column.name}") for column in FAILURES.primary_key))
    .values(counted=False)
)
"""Takes the parts of the key as `at_experiment_id` and so on."""

REPLACE_FAILURE = (
    update(FAILURES)
    .where(*(column == bindparam(f"at_{column.name}") for column in FAILURES.primary_key))
    .values(record=bindparam("record"))
)

LIST_CELLS = (
    select(*CELLS.primary_key, CELLS.c.dimension, CELLS.c.record)
    .where(CELLS.c.responses > 0)
    .order_by(*CELLS.primary_key)
)

_PLACE = tuple_(bindparam("run_id"), bindparam("turn"), bindparam("profile"))

SCORE_PAGE = (
    select(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile, SCORES.c.record)
    .where(SCORES.c.experiment_id == _EXPERIMENT)
    .where(tuple_(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile) > _PLACE)
    .order_by(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile)
    .limit(PAGE)
)
"""The scores of an experiment after a place in the order of their keys."""

LIST_FAILURES = (
    select(FAILURES.c.record)
    .where(FAILURES.c.experiment_id == _EXPERIMENT)
    .order_by(FAILURES.c.run_id, FAILURES.c.profile)
)
