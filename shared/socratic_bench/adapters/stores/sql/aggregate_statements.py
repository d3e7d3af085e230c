"""Scores, failures and cells as rows, and the statements about them.

A transaction locks rows in the order of their keys, so that no two transactions deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Select,
    Text,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    true,
    tuple_,
    union,
    update,
)

from socratic_bench.adapters.stores.records import Records, Row, record_of
from socratic_bench.adapters.stores.sql.dialect import PAGE, Dialect, looked_up
from socratic_bench.adapters.stores.sql.experiment_statements import (
    EXPERIMENT,
    IS_KEPT,
    OWN_PROFILE,
    PROFILE,
)
from socratic_bench.adapters.stores.sql.schema import (
    CELLS,
    CHANGES,
    EXPERIMENTS,
    FAILURES,
    RESPONSES,
    SCORES,
)
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


def row_of_score(scored: ScoredResponse) -> Row:
    return {
        "experiment_id": scored.run.experiment_id,
        "run_id": scored.run.run_id,
        "turn": scored.turn,
        "profile": scored.profile,
        "last_turn": scored.last_turn,
        "record": record_of(scored),
    }


def row_of_failure(failure: RunFailure, *, counted: bool) -> Row:
    return {
        "experiment_id": failure.run.experiment_id,
        "run_id": failure.run.run_id,
        "profile": failure.profile,
        "counted": counted,
        "record": record_of(failure),
    }


def row_of_cell(cell: Cell) -> Row:
    return {
        **cell.key._asdict(),
        "dimension": cell.dimension,
        "responses": cell.responses,
        "runs_ended": cell.runs_ended,
        "revision": 0,
        "record": cell.to_json(),
    }


def _cell_of_row(row: Sequence[Any]) -> Cell:
    """Read (experiment_id, model_id, scenario_id, turn, profile, dimension, record)."""
    *key, dimension, record = row
    return Cell.from_json(CellKey(*key), dimension, record)


SCORE_RECORDS = Records("scores", 3, lambda row: ScoredResponse.model_validate_json(row[3]))
"""Reads (run_id, turn, profile, record)."""

FAILURE_RECORDS = Records("failures", 2, lambda row: RunFailure.model_validate_json(row[2]))
"""Reads (run_id, profile, record)."""

CELL_RECORDS = Records("cells", 5, _cell_of_row)


REVISION = select(func.coalesce(func.sum(CHANGES.c.changes), 0))

REVISION_BEFORE_0008 = select(
    select(func.coalesce(func.sum(EXPERIMENTS.c.revision), 0)).scalar_subquery()
    + select(func.coalesce(func.sum(CELLS.c.revision), 0)).scalar_subquery()
)
"""Reads every cell. Only for readers of a schema that nothing migrates."""

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
"""The scores of an experiment after a given key."""

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
"""The failures of an experiment after a given key."""

_RUNS_ENDED = func.sum(CELLS.c.runs_ended)

ENDED_RUNS = (
    select(CELLS.c.model_id, _RUNS_ENDED)
    .where(CELLS.c.experiment_id == EXPERIMENT, CELLS.c.profile == OWN_PROFILE)
    .group_by(CELLS.c.model_id)
    .having(_RUNS_ENDED > 0)
)


class AggregateStatements:
    """Statements about many scores, failures or cells at once, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        score = dialect.insert(SCORES).on_conflict_do_nothing()
        self.insert_scores = dialect.insertion(SCORES, score)
        self.insert_failures = dialect.insert(FAILURES)

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

        self.done_runs = _done_runs(dialect)
        self.runs_to_score = _runs_to_score(dialect)
        self.ended_runs = select(SCORES.c.experiment_id, SCORES.c.run_id, SCORES.c.profile).where(
            dialect.among(SCORES.c.experiment_id, "experiment_ids"),
            dialect.among(SCORES.c.run_id, "run_ids"),
            SCORES.c.last_turn,
        )
        """Runs with a score in their last turn, and its profile."""

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
        self.cells_of_model = self.cells.where(CELLS.c.model_id == bindparam("model_id"))

        self.cell_revisions = (
            select(
                EXPERIMENTS.c.experiment_id,
                EXPERIMENTS.c.revision,
                func.count(CELLS.c.revision),
                func.coalesce(func.sum(CELLS.c.revision), 0),
            )
            .outerjoin_from(
                EXPERIMENTS, CELLS, CELLS.c.experiment_id == EXPERIMENTS.c.experiment_id
            )
            .where(dialect.among(EXPERIMENTS.c.experiment_id, "experiment_ids"), IS_KEPT)
            .group_by(EXPERIMENTS.c.experiment_id, EXPERIMENTS.c.revision)
        )
        """The revision of a tombstone grows, so that these three together never come back."""

        self.profiles_of_cells = (
            select(CELLS.c.experiment_id, CELLS.c.profile)
            .distinct()
            .where(dialect.among(CELLS.c.experiment_id, "experiment_ids"))
        )

        cell_key = list(CELLS.primary_key.columns)
        self.keys_of_cells = partial(dialect.keys, cell_key)
        # An upsert that changes nothing locks too, but writes each row again.
        self.take_cells = (
            select(*CELLS.primary_key, CELLS.c.dimension, CELLS.c.record)
            .where(dialect.keyed(cell_key))
            .order_by(*CELLS.primary_key)
            .with_for_update()
        )
        """Takes `keys_of_cells`, and locks them in their order."""


def _done_runs(dialect: Dialect) -> CompoundSelect[str]:
    """Select runs that ended under a profile."""
    return union(
        *(
            select(table.c.run_id).where(
                table.c.experiment_id == EXPERIMENT,
                dialect.among(table.c.run_id, "run_ids"),
                table.c.profile == PROFILE,
                ended,
            )
            for table, ended in ((SCORES, SCORES.c.last_turn), (FAILURES, true()))
        )
    )


def _failure_kinds(dialect: Dialect) -> Select[str, str, int, str, str]:
    """Select model, kind, number of runs, and the last run's id and profile.

    Runs that ended with a response do not count.
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
    """Select runs with a response that lacks its score under a profile."""
    is_scored = looked_up(
        select(SCORES.c.turn).where(
            SCORES.c.experiment_id == EXPERIMENT,
            SCORES.c.run_id == RESPONSES.c.run_id,
            SCORES.c.turn == RESPONSES.c.turn,
            SCORES.c.profile == PROFILE,
        )
    )
    return select(RESPONSES.c.run_id).where(
        dialect.among(RESPONSES.c.run_id, "run_ids"), ~is_scored
    )
