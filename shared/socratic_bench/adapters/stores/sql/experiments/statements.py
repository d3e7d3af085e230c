"""The statements about experiments."""

from __future__ import annotations

from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    case,
    false,
    func,
    or_,
    select,
    update,
)

from socratic_bench.adapters.stores.sql.dialect import Dialect
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
from socratic_bench.domain.experiment.state import MAY_CALL, ExperimentState

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
    select(EXPERIMENTS.c.completed_at, EXPERIMENTS.c.planned_runs <= _DONE)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update(of=EXPERIMENTS, key_share=True)
)
"""The time of completion of an experiment, and whether all its runs are done. Locks it."""

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
        """See `holding`. It holds no stopped or deleted experiment: the transaction that waits for
        the holders would wait for ever."""
        self.asked_in = (
            select(CONVERSATIONS.c.conversation_key, CONVERSATIONS.c.experiment_id)
            .where(dialect.among(CONVERSATIONS.c.conversation_key, "conversation_keys"))
            .order_by(CONVERSATIONS.c.created_at.desc(), CONVERSATIONS.c.experiment_id)
        )
        self.progress = PROGRESS.where(of_these)
        self.manifests = select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.manifest).where(of_these)
