"""The statements of the SQL store that are the same in every dialect, made once."""

from __future__ import annotations

from sqlalchemy import BindParameter, bindparam, false, func, select, tuple_, update

from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILURES,
    SCORES,
    SPENDING,
)
from socratic_bench.domain.experiment_state import ExperimentState

PAGE = 500
"""How many rows a page has."""

EXPERIMENT: BindParameter[str] = bindparam("experiment_id")
"""The parameter `experiment_id`."""

OWN_PROFILE = (
    select(EXPERIMENTS.c.profile).where(EXPERIMENTS.c.experiment_id == EXPERIMENT).scalar_subquery()
)

EXPERIMENT_COLUMNS = (
    EXPERIMENTS.c.experiment_id,
    EXPERIMENTS.c.manifest,
    EXPERIMENTS.c.occasion,
    EXPERIMENTS.c.created_at,
    EXPERIMENTS.c.completed_at,
    EXPERIMENTS.c.state,
    EXPERIMENTS.c.submitted,
)

NEWEST_FIRST = (EXPERIMENTS.c.created_at.desc(), EXPERIMENTS.c.experiment_id)

_IS_KEPT = EXPERIMENTS.c.state != ExperimentState.DELETED

LIST_EXPERIMENTS = (
    select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.revision)
    .where(_IS_KEPT)
    .order_by(*NEWEST_FIRST)
)

FIND_EXPERIMENT = select(*EXPERIMENT_COLUMNS).where(
    EXPERIMENTS.c.experiment_id == EXPERIMENT, _IS_KEPT
)

_IS_COMPLETE = EXPERIMENTS.c.completed_at.is_not(None)

COUNT_EXPERIMENTS = (
    select(
        _IS_COMPLETE,
        func.coalesce(SPENDING.c.exhausted, false()),
        EXPERIMENTS.c.state,
        func.count(),
    )
    .outerjoin_from(EXPERIMENTS, SPENDING, SPENDING.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(_IS_KEPT)
    .group_by(_IS_COMPLETE, func.coalesce(SPENDING.c.exhausted, false()), EXPERIMENTS.c.state)
)
"""Whether they are complete, whether their budgets are exhausted, their states, and how many there
are."""

HAS_CONVERSATIONS = (
    select(CONVERSATIONS.c.conversation_key)
    .where(CONVERSATIONS.c.experiment_id == EXPERIMENT)
    .limit(1)
)

REPLACE_MANIFEST = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))
    .values(manifest=bindparam("manifest"), revision=EXPERIMENTS.c.revision + 1)
)

_DONE = (
    select(func.coalesce(func.sum(CELLS.c.runs_ended), 0))
    .where(CELLS.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(CELLS.c.profile == EXPERIMENTS.c.profile)
    .scalar_subquery()
)

PROGRESS = select(
    EXPERIMENTS.c.experiment_id,
    EXPERIMENTS.c.planned_runs,
    _DONE,
    select(func.count())
    .where(FAILURES.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(FAILURES.c.profile == EXPERIMENTS.c.profile, FAILURES.c.counted)
    .scalar_subquery(),
)
"""Which experiment; planned, done and failed runs."""

TAKE_COMPLETION = (
    select(EXPERIMENTS.c.completed_at, EXPERIMENTS.c.planned_runs <= _DONE)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update(of=EXPERIMENTS, key_share=True)
)
"""Since when an experiment is complete, and whether all its runs are done. Locks it."""

COMPLETE = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))
    .values(completed_at=bindparam("at"), revision=EXPERIMENTS.c.revision + 1)
)

MARK_PLANNED = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))
    .where(EXPERIMENTS.c.planned_at.is_(None))
    .values(planned_at=bindparam("at"))
)

REVISION = select(
    select(func.coalesce(func.sum(EXPERIMENTS.c.revision), 0)).scalar_subquery(),
    select(func.coalesce(func.sum(CELLS.c.revision), 0)).scalar_subquery(),
)

CALLS_OF_EXPERIMENT = select(func.coalesce(func.sum(CALLS.c.calls), 0), func.count()).where(
    CALLS.c.experiment_id == EXPERIMENT, CALLS.c.calls > 0
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
    .where(SCORES.c.experiment_id == EXPERIMENT)
    .where(tuple_(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile) > _PLACE)
    .order_by(SCORES.c.run_id, SCORES.c.turn, SCORES.c.profile)
    .limit(PAGE)
)
"""The scores of an experiment after a place in the order of their keys."""

FAILURE_PAGE = (
    select(FAILURES.c.run_id, FAILURES.c.profile, FAILURES.c.record)
    .where(FAILURES.c.experiment_id == EXPERIMENT)
    .where(
        tuple_(FAILURES.c.run_id, FAILURES.c.profile)
        > tuple_(bindparam("run_id"), bindparam("profile"))
    )
    .order_by(FAILURES.c.run_id, FAILURES.c.profile)
    .limit(PAGE)
)
"""The failures of an experiment after a place in the order of their keys."""
