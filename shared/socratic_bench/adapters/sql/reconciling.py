"""The statements that find what an experiment lacks."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, exists, func, or_, select

from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    IS_RUNNING,
    RESPONSES,
    SCORES,
    SPENDING,
)
from socratic_bench.adapters.sql.statements import EXPERIMENT, OWN_PROFILE
from socratic_bench.domain.experiment_state import ExperimentState

LIST_RUNNING = (
    select(
        EXPERIMENTS.c.experiment_id,
        EXPERIMENTS.c.created_at,
        EXPERIMENTS.c.planned_at,
        SPENDING.c.exhausted,
        EXPERIMENTS.c.state,
    )
    .outerjoin_from(EXPERIMENTS, SPENDING, SPENDING.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(IS_RUNNING, EXPERIMENTS.c.submitted, EXPERIMENTS.c.state != ExperimentState.DELETED)
    .order_by(EXPERIMENTS.c.created_at.desc(), EXPERIMENTS.c.experiment_id)
)

_RUNS_ENDED = func.sum(CELLS.c.runs_ended)

ENDED_RUNS = (
    select(CELLS.c.model_id, _RUNS_ENDED)
    .where(CELLS.c.experiment_id == EXPERIMENT, CELLS.c.profile == OWN_PROFILE)
    .group_by(CELLS.c.model_id)
    .having(_RUNS_ENDED > 0)
)

_IS_SCORED = exists().where(
    SCORES.c.experiment_id == CALLS.c.experiment_id,
    SCORES.c.run_id == CALLS.c.run_id,
    SCORES.c.turn == CALLS.c.turn,
    SCORES.c.profile == OWN_PROFILE,
)

UNSCORED_RESPONSES = (
    select(*RESPONSES.primary_key, RESPONSES.c.record)
    .join_from(
        CALLS,
        RESPONSES,
        and_(RESPONSES.c.run_id == CALLS.c.run_id, RESPONSES.c.turn == CALLS.c.turn),
    )
    .where(CALLS.c.experiment_id == EXPERIMENT, ~_IS_SCORED)
    .limit(bindparam("limit"))
)

UNFOLDED_FAILURES = (
    select(FAILED_RUNS.c.run_id, FAILED_RUNS.c.record, FAILURES.c.record)
    .outerjoin_from(
        FAILED_RUNS,
        FAILURES,
        and_(
            FAILURES.c.experiment_id == FAILED_RUNS.c.experiment_id,
            FAILURES.c.run_id == FAILED_RUNS.c.run_id,
            FAILURES.c.profile == OWN_PROFILE,
        ),
    )
    .where(FAILED_RUNS.c.experiment_id == EXPERIMENT)
    .where(or_(FAILURES.c.run_id.is_(None), FAILURES.c.record != FAILED_RUNS.c.record))
    .order_by(FAILED_RUNS.c.run_id)
)
"""Run, the record of the runner, and the other one that was folded, if any."""
