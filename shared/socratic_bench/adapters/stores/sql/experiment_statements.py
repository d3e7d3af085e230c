"""Experiments as rows, the statements about them, and the locks on their states."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    Executable,
    and_,
    bindparam,
    case,
    false,
    func,
    or_,
    select,
    update,
)

from socratic_bench.adapters.stores.records import Records, Row, microseconds, record_of, time_at
from socratic_bench.adapters.stores.sql.dialect import Dialect, chunks
from socratic_bench.adapters.stores.sql.schema import (
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILURES,
    IS_RUNNING,
    KEY,
    NO_MANIFEST,
    SPENDING,
)
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.state import MAY_CALL, ExperimentState
from socratic_bench.domain.money import nanodollars
from socratic_bench.ports.stores.experiments import RunningExperiment


def row_of_experiment(experiment: Experiment) -> Row:
    completed_at = experiment.completed_at
    return {
        "experiment_id": experiment.experiment_id,
        "manifest": record_of(experiment.manifest),
        "occasion": experiment.occasion,
        "profile": experiment.manifest.profile,
        "planned_runs": experiment.manifest.planned_runs,
        "created_at": microseconds(experiment.created_at),
        "completed_at": None if completed_at is None else microseconds(completed_at),
        "revision": 1,
        "planned_at": None,
        "state": experiment.state,
        "submitted": experiment.submitted,
    }


def row_of_spending(experiment: Experiment) -> Row:
    """Return the row of an experiment's budget, with no costs yet."""
    budget = experiment.manifest.budget
    return {
        "experiment_id": experiment.experiment_id,
        "budget": None if budget is None else nanodollars(budget),
        "committed": 0,
        "exhausted": False,
        "paid": 0,
        "reused": 0,
    }


def _experiment_of_row(row: Sequence[Any]) -> Experiment:
    """Read (experiment_id, manifest, occasion, created_at, completed_at, state, submitted)."""
    experiment_id, manifest, occasion, created_at, completed_at, state, submitted = row
    return Experiment(
        experiment_id=experiment_id,
        manifest=Manifest.model_validate_json(manifest, extra="ignore"),
        occasion=occasion,
        created_at=time_at(created_at),
        completed_at=None if completed_at is None else time_at(completed_at),
        state=ExperimentState(state),
        submitted=submitted,
    )


def running_of_row(row: Sequence[Any], groups: frozenset[str]) -> RunningExperiment:
    """Read (experiment_id, created_at, planned_at, exhausted, state, revision)."""
    experiment_id, created_at, planned_at, exhausted, state, _ = row
    return RunningExperiment(
        experiment_id=experiment_id,
        created_at=time_at(created_at),
        planned_at=None if planned_at is None else time_at(planned_at),
        groups=groups,
        exhausted=bool(exhausted),
        state=ExperimentState(state),
    )


EXPERIMENT_RECORDS = Records("experiments", 1, _experiment_of_row)

EXPERIMENT: BindParameter[str] = bindparam("experiment_id")
"""The parameter `experiment_id`."""

OWN_PROFILE = (
    select(EXPERIMENTS.c.profile).where(EXPERIMENTS.c.experiment_id == EXPERIMENT).scalar_subquery()
)

PROFILE = func.coalesce(bindparam("profile", type_=KEY), OWN_PROFILE)
"""The parameter `profile`; None: the experiment's own."""

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

IS_KEPT = EXPERIMENTS.c.state != ExperimentState.DELETED

LIST_EXPERIMENTS = (
    select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.revision)
    .where(IS_KEPT)
    .order_by(*NEWEST_FIRST)
)

FIND_EXPERIMENT = select(*EXPERIMENT_COLUMNS).where(
    EXPERIMENTS.c.experiment_id == EXPERIMENT, IS_KEPT
)

TAKE_MANIFEST = (
    select(EXPERIMENTS.c.manifest)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT, IS_KEPT)
    .with_for_update(key_share=True)
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
    .where(IS_KEPT)
    .group_by(_IS_COMPLETE, func.coalesce(SPENDING.c.exhausted, false()), EXPERIMENTS.c.state)
)
"""Completeness, exhaustion and state, with the number of experiments for each combination."""

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
    # A complete experiment has all its runs done, unless it was deleted: a list of many reads no
    # cells of it.
    case(
        (
            EXPERIMENTS.c.completed_at.is_not(None) & (EXPERIMENTS.c.manifest != NO_MANIFEST),
            EXPERIMENTS.c.planned_runs,
        ),
        else_=_DONE,
    ),
    select(func.count())
    .where(FAILURES.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(FAILURES.c.profile == EXPERIMENTS.c.profile, FAILURES.c.counted)
    .scalar_subquery(),
)
"""The experiment; its planned, done and failed runs."""

TAKE_COMPLETION = (
    select(EXPERIMENTS.c.completed_at, EXPERIMENTS.c.planned_runs, EXPERIMENTS.c.manifest, _DONE)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update(of=EXPERIMENTS, key_share=True)
)
"""The time of completion of an experiment, its planned runs, its manifest and its done runs. Locks
it."""

COMPLETE = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))
    .values(
        completed_at=bindparam("at"),
        planned_runs=bindparam("planned"),
        manifest=bindparam("stopped"),
        revision=EXPERIMENTS.c.revision + 1,
    )
)

MARK_PLANNED = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))
    .where(EXPERIMENTS.c.planned_at.is_(None))
    .values(planned_at=bindparam("at"))
)

LIST_RUNNING = (
    select(
        EXPERIMENTS.c.experiment_id,
        EXPERIMENTS.c.created_at,
        EXPERIMENTS.c.planned_at,
        SPENDING.c.exhausted,
        EXPERIMENTS.c.state,
        EXPERIMENTS.c.revision,
    )
    .outerjoin_from(EXPERIMENTS, SPENDING, SPENDING.c.experiment_id == EXPERIMENTS.c.experiment_id)
    .where(IS_RUNNING, EXPERIMENTS.c.submitted, EXPERIMENTS.c.state != ExperimentState.DELETED)
    .order_by(EXPERIMENTS.c.created_at.desc(), EXPERIMENTS.c.experiment_id)
)

TAKE_STATE = (
    select(EXPERIMENTS.c.state, EXPERIMENTS.c.submitted, EXPERIMENTS.c.completed_at)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update(key_share=True)
)

# D-120: taking the lock at once starves while leases hold the row in turn.
WAIT_FOR_HOLDERS = (
    select(EXPERIMENTS.c.experiment_id)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update()
)

AT_EXPERIMENT = update(EXPERIMENTS).where(
    EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id")
)

CHANGE_STATE = AT_EXPERIMENT.values(state=bindparam("to"), revision=EXPERIMENTS.c.revision + 1)


class ExperimentStatements:
    """Statements about many experiments at once, or with rows, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows
        self.insert_conversations = dialect.insert(CONVERSATIONS).on_conflict_do_nothing()

        experiment = dialect.insert(EXPERIMENTS)
        is_handed_over = and_(~EXPERIMENTS.c.submitted, experiment.excluded.submitted)
        # An update without changes locks and returns an existing row.
        register = experiment.on_conflict_do_update(
            index_elements=list(EXPERIMENTS.primary_key),
            set_={
                "revision": EXPERIMENTS.c.revision + case((is_handed_over, 1), else_=0),
                "submitted": or_(EXPERIMENTS.c.submitted, experiment.excluded.submitted),
            },
        )
        self.register = register.returning(*EXPERIMENT_COLUMNS)
        """Returns the stored experiment, new or not."""

        spending = dialect.insert(SPENDING)
        self.set_budget = spending.on_conflict_do_update(
            index_elements=list(SPENDING.primary_key),
            set_={
                "budget": spending.excluded.budget,
                # A missing budget compares as unknown, and is never exhausted.
                "exhausted": and_(
                    SPENDING.c.exhausted,
                    spending.excluded.budget.is_not(None),
                    spending.excluded.budget <= SPENDING.c.budget,
                ),
            },
        )

        of_these = dialect.among(EXPERIMENTS.c.experiment_id, "experiment_ids")
        self.experiments = (
            select(*EXPERIMENT_COLUMNS, EXPERIMENTS.c.revision)
            .where(of_these, IS_KEPT)
            .order_by(*NEWEST_FIRST)
        )
        self.profiles = select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.profile).where(
            of_these, IS_KEPT
        )
        self.states = select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.state).where(of_these)
        held = (
            select(EXPERIMENTS.c.experiment_id)
            .where(of_these)
            .order_by(EXPERIMENTS.c.experiment_id)
            .with_for_update(read=True, key_share=True)
        )
        self.hold_open = held.where(
            or_(*(EXPERIMENTS.c.state == each for each in sorted(MAY_CALL)))
        )
        self.hold_kept = held.where(EXPERIMENTS.c.state != ExperimentState.DELETED)
        """See `stopped_among`. It holds no stopped or deleted experiment: the transaction that
        waits for the holders would wait for ever."""
        self.asked_in = (
            select(CONVERSATIONS.c.conversation_key, CONVERSATIONS.c.experiment_id)
            .where(dialect.among(CONVERSATIONS.c.conversation_key, "conversation_keys"))
            .order_by(CONVERSATIONS.c.created_at.desc(), CONVERSATIONS.c.experiment_id)
        )
        self.progress = PROGRESS.where(of_these)
        self.manifests = select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.manifest).where(of_these)


# A transaction that begins calls of an experiment, or stores facts of it, holds a shared lock on
# its row until the end. One that stops the experiment changes the row without waiting, and then
# waits for all holders that have seen it unchanged. Every transaction locks this row before any
# other, so that no two transactions deadlock.
# D-120: any earlier look leaves a moment in which calls begin after `cancel` returned.
async def stopped_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Return those experiments whose calls may not begin; hold the others."""
    return await _refused(transaction, statements, statements.hold_open, experiment_ids)


async def deleted_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Return the deleted ones of these experiments; hold the others."""
    return await _refused(transaction, statements, statements.hold_kept, experiment_ids)


async def _refused(
    transaction: Transaction,
    statements: ExperimentStatements,
    hold: Executable,
    experiment_ids: Collection[str],
) -> set[str]:
    """Return the registered experiments that cannot be held."""
    left = set(experiment_ids)
    for chunk in chunks(sorted(experiment_ids)):
        left.difference_update(
            id_ for (id_,) in await transaction.execute(hold, {"experiment_ids": chunk})
        )
    there = set[str]()
    for chunk in chunks(left):
        rows = await transaction.execute(statements.states, {"experiment_ids": chunk})
        there.update(id_ for id_, _ in rows)
    return there
