"""The statements of the SQL store that take many rows or keys at once, made for a dialect.

Whoever writes or locks many rows gives them in the order of their keys, so that two transactions
never wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from sqlalchemy import (
    CompoundSelect,
    Select,
    Table,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    true,
    union,
)

from socratic_bench.adapters.sql.dialects import Dialect
from socratic_bench.adapters.sql.schema import (
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    LIMITS,
    PAUSES,
    RESPONSES,
    SCORES,
    SHARES,
)
from socratic_bench.adapters.sql.statements import (
    EXPERIMENT,
    EXPERIMENT_COLUMNS,
    LIST_CELLS,
    LIST_EXPERIMENTS,
    NEWEST_FIRST,
    OWN_PROFILE,
    PROGRESS,
)
from socratic_bench.adapters.sql.transactions import Insertion
from socratic_bench.domain.experiment_state import MAY_CALL, ExperimentState

CHUNK = 500
"""How many keys a `SELECT` is given at a time."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """`items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


class Writes:
    """Statements whose parameters are the `rows` of a dialect, by the names of their columns."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        def insert_new(table: Table) -> Insertion:
            return dialect.insertion(table, dialect.insert(table).on_conflict_do_nothing())

        self.insert_conversations = dialect.insert(CONVERSATIONS).on_conflict_do_nothing()
        self.insert_responses = insert_new(RESPONSES)
        self.insert_scores = insert_new(SCORES)
        self.insert_failures = dialect.insert(FAILURES)

        experiment = dialect.insert(EXPERIMENTS)
        is_handed_over = and_(~EXPERIMENTS.c.submitted, experiment.excluded.submitted)
        # An update that changes nothing locks and returns a row that is there already.
        register = experiment.on_conflict_do_update(
            index_elements=list(EXPERIMENTS.primary_key),
            set_={
                "revision": EXPERIMENTS.c.revision + case((is_handed_over, 1), else_=0),
                "submitted": or_(EXPERIMENTS.c.submitted, experiment.excluded.submitted),
            },
        )
        self.register = register.returning(*EXPERIMENT_COLUMNS)
        """Gives the experiment that is stored, new or not."""

        failed_run = dialect.insert(FAILED_RUNS)
        self.write_failed_runs = failed_run.on_conflict_do_update(
            index_elements=list(FAILED_RUNS.primary_key),
            set_={"retry": failed_run.excluded.retry, "record": failed_run.excluded.record},
            where=FAILED_RUNS.c.retry < failed_run.excluded.retry,
        )

        limit = dialect.insert(LIMITS)
        self.take_limits = limit.on_conflict_do_update(
            index_elements=list(LIMITS.primary_key), set_={"total": limit.excluded.total}
        )
        share = dialect.insert(SHARES)
        self.write_shares = share.on_conflict_do_update(
            index_elements=list(SHARES.primary_key),
            set_={
                "parts": share.excluded.parts,
                "wants": share.excluded.wants,
                "held_until": share.excluded.held_until,
            },
        )

        # An update that changes nothing locks and returns a row that is there already.
        pause = dialect.insert(PAUSES)
        self.take_pauses = pause.on_conflict_do_update(
            index_elements=list(PAUSES.primary_key), set_={"number": PAUSES.c.number}
        ).returning(*PAUSES.columns)
        self.write_pauses = pause.on_conflict_do_update(
            index_elements=list(PAUSES.primary_key),
            set_={
                each.name: pause.excluded[each.name]
                for each in PAUSES.columns
                if not each.primary_key
            },
        )

        cell = dialect.insert(CELLS)
        make_cells = cell.on_conflict_do_update(
            index_elements=list(CELLS.primary_key), set_={"revision": CELLS.c.revision}
        )
        self.make_cells = make_cells.returning(
            *CELLS.primary_key, CELLS.c.dimension, CELLS.c.record
        )
        self.write_cells = cell.on_conflict_do_update(
            index_elements=list(CELLS.primary_key),
            set_={
                "responses": cell.excluded.responses,
                "runs_ended": cell.excluded.runs_ended,
                "record": cell.excluded.record,
                "revision": CELLS.c.revision + 1,
            },
        )


class Lookups:
    """Statements about many things that are there, by lists of `run_ids` and so on."""

    def __init__(self, dialect: Dialect) -> None:
        of_these = dialect.among(EXPERIMENTS.c.experiment_id, "experiment_ids")
        self.experiments = (
            select(*EXPERIMENT_COLUMNS, EXPERIMENTS.c.revision)
            .where(of_these)
            .order_by(*NEWEST_FIRST)
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
        """See `stopping`. What is stopped, or deleted, is not held: whoever waits for all others to
        let go of it would wait for ever."""
        self.asked_in = (
            select(CONVERSATIONS.c.conversation_key, CONVERSATIONS.c.experiment_id)
            .where(dialect.among(CONVERSATIONS.c.conversation_key, "conversation_keys"))
            .order_by(CONVERSATIONS.c.created_at.desc(), CONVERSATIONS.c.experiment_id)
        )
        self.revisions = LIST_EXPERIMENTS.where(of_these)
        self.progress = PROGRESS.where(of_these)
        self.manifests = select(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.manifest).where(of_these)
        self.responses = (
            select(*RESPONSES.primary_key, RESPONSES.c.record)
            .where(dialect.among(RESPONSES.c.run_id, "run_ids"))
            .order_by(RESPONSES.c.run_id, RESPONSES.c.turn)
        )
        self.response_keys = select(*RESPONSES.primary_key).where(
            dialect.among(RESPONSES.c.run_id, "run_ids")
        )
        self.delete_responses = delete(RESPONSES).where(
            dialect.among(RESPONSES.c.run_id, "run_ids")
        )
        self.done_runs = _done_runs(dialect)
        self.runs_to_score = _runs_to_score(dialect)
        self.ended_runs = select(SCORES.c.experiment_id, SCORES.c.run_id, SCORES.c.profile).where(
            dialect.among(SCORES.c.experiment_id, "experiment_ids"),
            dialect.among(SCORES.c.run_id, "run_ids"),
            SCORES.c.last_turn,
        )
        """Runs with a score in their last turn, and under which profile."""

        self.failed_of_experiment = select(FAILURES.c.run_id).where(
            FAILURES.c.experiment_id == EXPERIMENT, dialect.among(FAILURES.c.run_id, "run_ids")
        )
        self.failure_kinds = _failure_kinds(dialect)
        of_experiments = dialect.among(FAILURES.c.experiment_id, "experiment_ids")
        self.has_failures = select(FAILURES.c.run_id).where(of_experiments).limit(1)
        self.failures = select(
            FAILURES.c.run_id, FAILURES.c.profile, FAILURES.c.record, FAILURES.c.counted
        ).where(of_experiments, dialect.among(FAILURES.c.run_id, "run_ids"))
        self.cells = LIST_CELLS.where(dialect.among(CELLS.c.experiment_id, "experiment_ids"))

        cell_key = list(CELLS.primary_key.columns)
        self.keys_of_cells = partial(dialect.keys, cell_key)
        self.take_cells = (
            select(*CELLS.primary_key, CELLS.c.dimension, CELLS.c.record)
            .where(dialect.keyed(cell_key))
            .order_by(*CELLS.primary_key)
            .with_for_update()
        )
        """Takes `keys_of_cells`, and locks them in their order."""

        self.failed_runs = select(
            FAILED_RUNS.c.run_id, FAILED_RUNS.c.record, FAILED_RUNS.c.retry
        ).where(dialect.among(FAILED_RUNS.c.run_id, "run_ids"))

        self.pauses = select(PAUSES).where(dialect.among(PAUSES.c.scope, "scopes"))
        self.shares = select(SHARES).where(dialect.among(SHARES.c.scope, "scopes"))
        share_key = list(SHARES.primary_key.columns)
        self.keys_of_shares = partial(dialect.keys, share_key)
        self.delete_shares = delete(SHARES).where(dialect.keyed(share_key))


def _done_runs(dialect: Dialect) -> CompoundSelect[str]:
    return union(
        *(
            select(table.c.run_id).where(
                table.c.experiment_id == EXPERIMENT,
                dialect.among(table.c.run_id, "run_ids"),
                table.c.profile == OWN_PROFILE,
                ended,
            )
            for table, ended in ((SCORES, SCORES.c.last_turn), (FAILURES, true()))
        )
    )


def _failure_kinds(dialect: Dialect) -> Select[str, str, int, str, str]:
    """Model and kind as they are grouped, how many runs, and the last one's id and profile.

    Runs that have ended with a response do not count.
    """
    model = dialect.entry(FAILURES.c.record, "run", "model_id")
    kind = dialect.entry(FAILURES.c.record, "kind")
    last_turn = cast(dialect.entry(RESPONSES.c.record, "last_turn"), Text)
    is_last = or_(last_turn == "true", last_turn == "1")
    answered = exists().where(RESPONSES.c.run_id == FAILURES.c.run_id, is_last)
    return (
        select(model, kind, func.count(), func.max(FAILURES.c.run_id), func.max(FAILURES.c.profile))
        .where(FAILURES.c.experiment_id == EXPERIMENT, FAILURES.c.profile == OWN_PROFILE)
        .where(~answered)
        .group_by(model, kind)
        .order_by(model, func.count().desc(), kind)
    )


def _runs_to_score(dialect: Dialect) -> Select[str]:
    """Runs with a stored response that has no score yet."""
    score_of_response = and_(
        SCORES.c.experiment_id == EXPERIMENT,
        SCORES.c.run_id == RESPONSES.c.run_id,
        SCORES.c.turn == RESPONSES.c.turn,
        SCORES.c.profile == OWN_PROFILE,
    )
    return (
        select(RESPONSES.c.run_id)
        .outerjoin_from(RESPONSES, SCORES, score_of_response)
        .where(dialect.among(RESPONSES.c.run_id, "run_ids"), SCORES.c.run_id.is_(None))
    )
