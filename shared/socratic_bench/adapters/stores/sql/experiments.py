"""The role `Experiments` of the SQL store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Final

from socratic_bench.adapters.stores.records import (
    GROUPS,
    Row,
    ended_after,
    microseconds,
    time_at,
    with_fields_of,
)
from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.experiment_statements import (
    COMPLETE,
    COUNT_EXPERIMENTS,
    EXPERIMENT_RECORDS,
    FIND_EXPERIMENT,
    HAS_CONVERSATIONS,
    LIST_EXPERIMENTS,
    LIST_RUNNING,
    MARK_PLANNED,
    REPLACE_MANIFEST,
    TAKE_COMPLETION,
    row_of_experiment,
    row_of_spending,
    running_of_row,
)
from socratic_bench.adapters.stores.sql.response_statements import UNSCORED_RESPONSES
from socratic_bench.adapters.stores.sql.role import Now
from socratic_bench.adapters.stores.sql.states import SqlExperimentStates
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState, standing, stopped_sentence
from socratic_bench.errors import ExperimentStopped
from socratic_bench.ports.stores.experiments import ExperimentCounts, Progress, RunningExperiment

_EXPERIMENTS_PER_QUERY: Final = 50
"""Plans that one query reads."""


class SqlExperiments(SqlExperimentStates):
    """Registers and completes experiments, and reports their progress."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        super().__init__(database, now)
        self._groups: dict[str, tuple[int, frozenset[str] | None]] = {}
        """The groups of each running experiment, with its revision; None: unreadable."""

        self._outlines: dict[str, tuple[int, ExperimentOutline | None]] = {}
        """The outline of every experiment, with its revision; None: unreadable."""

    async def register(self, experiment: Experiment) -> Experiment:
        parameters = {"experiment_id": experiment.experiment_id}
        async with self._database.write() as transaction:
            await self._register(transaction, row_of_experiment(experiment))
            budget = self._statements.experiments.rows([row_of_spending(experiment)])
            await transaction.execute(self._statements.experiments.set_budget, budget)
            [row] = await transaction.execute(FIND_EXPERIMENT, parameters)
            stored = EXPERIMENT_RECORDS.fact(row)
            await self._name_conversations(transaction, stored)
        return stored

    async def experiment(self, experiment_id: str) -> Experiment | None:
        parameters = {"experiment_id": experiment_id}
        rows = await self._database.look_up(FIND_EXPERIMENT, parameters)
        return EXPERIMENT_RECORDS.fact(rows[0]) if rows else None

    async def experiments(
        self, experiment_ids: Collection[str] | None = None
    ) -> Sequence[Experiment]:
        found: list[Experiment] = []
        async with self._database.read() as transaction:
            if experiment_ids is None:
                every = await transaction.execute(LIST_EXPERIMENTS)
                experiment_ids = [experiment_id for experiment_id, _ in every]
            for chunk in chunks(experiment_ids, _EXPERIMENTS_PER_QUERY):
                found += (await self._read(transaction, chunk)).values()
        return sorted(found, key=_newest_first)

    async def outlines(self) -> Sequence[ExperimentOutline]:
        known: dict[str, tuple[int, ExperimentOutline | None]] = {}
        async with self._database.read() as transaction:
            revisions = await transaction.execute(LIST_EXPERIMENTS)
            for experiment_id, revision in revisions:
                kept = self._outlines.get(experiment_id)
                known[experiment_id] = kept if kept and kept[0] == revision else (revision, None)
            unread = [id_ for id_, each in known.items() if self._outlines.get(id_) != each]
            for chunk in chunks(unread, _EXPERIMENTS_PER_QUERY):
                for (id_, revision), read in (await self._read(transaction, chunk)).items():
                    known[id_] = revision, ExperimentOutline.of(read)
        self._outlines = known
        return [outline for _, outline in known.values() if outline is not None]

    async def count_experiments(self) -> ExperimentCounts:
        counts: Counter[str] = Counter()
        async with self._database.read() as transaction:
            rows = await transaction.execute(COUNT_EXPERIMENTS)
        for is_complete, is_exhausted, stored, count in rows:
            state = ExperimentState(stored)
            counts[standing(state, is_complete=is_complete, is_exhausted=is_exhausted)] += count
        return ExperimentCounts(
            **{each.name: counts[each.name] for each in fields(ExperimentCounts)}
        )

    async def complete(
        self, experiment_id: str, at: datetime, stopped_after: int | None = None
    ) -> datetime | None:
        of_experiment = {"experiment_id": experiment_id}
        async with self._database.write() as transaction:
            rows = await transaction.execute(TAKE_COMPLETION, of_experiment)
            if not rows:
                return None
            [(completed_at, planned, manifest, done)] = rows
            if completed_at is not None:
                return time_at(completed_at)
            manifest, runs = ended_after(manifest, planned, stopped_after)
            is_done = int(done) >= runs if stopped_after is None else int(done) == runs
            one = {**of_experiment, "limit": 1}
            if not is_done or await transaction.execute(UNSCORED_RESPONSES, one):
                return None
            parameters = {
                "at_experiment_id": experiment_id,
                "at": microseconds(at),
                "planned": runs,
                "stopped": manifest,
            }
            await transaction.execute(COMPLETE, parameters)
        return time_at(microseconds(at))

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        async with self._database.read() as transaction:
            for chunk in chunks(conversation_keys):
                parameters = {"conversation_keys": chunk}
                for key, experiment_id in await transaction.execute(
                    self._statements.experiments.asked_in, parameters
                ):
                    newest = found.setdefault(key, [])
                    if len(newest) < most:
                        newest.append(experiment_id)
        return found

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        parameters = {"at_experiment_id": experiment_id, "at": microseconds(at)}
        async with self._database.write() as transaction:
            await transaction.execute(MARK_PLANNED, parameters)

    async def running(self) -> Sequence[RunningExperiment]:
        async with self._database.read() as transaction:
            rows = await transaction.execute(LIST_RUNNING)
            revisions = {row.experiment_id: row.revision for row in rows}
            known = await self._groups_of(transaction, revisions)
        self._groups = known
        return [
            running_of_row(row, groups)
            for row in rows
            if (groups := known[row.experiment_id][1]) is not None
        ]

    async def progress(self, experiment_id: str) -> Progress:
        if progress := (await self.progress_of([experiment_id])).get(experiment_id):
            return progress
        raise self._no_experiment(experiment_id)

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        progress: dict[str, Progress] = {}
        for chunk in chunks(experiment_ids):
            parameters = {"experiment_ids": chunk}
            rows = await self._database.look_up(self._statements.experiments.progress, parameters)
            for experiment_id, planned, done, failed in rows:
                progress[experiment_id] = Progress(planned, int(done), failed)
        return progress

    async def _name_conversations(self, transaction: Transaction, experiment: Experiment) -> None:
        """Store the conversations of an experiment, unless they are stored."""
        of_experiment = {"experiment_id": experiment.experiment_id}
        if await transaction.execute(HAS_CONVERSATIONS, of_experiment):
            return
        created_at = microseconds(experiment.created_at)
        rows = [
            {"conversation_key": key, **of_experiment, "created_at": created_at}
            for key in sorted(experiment.reuse_keys)
        ]
        for chunk in chunks(rows):
            parameters = self._statements.experiments.rows(chunk)
            await transaction.execute(self._statements.experiments.insert_conversations, parameters)

    async def _read(
        self, transaction: Transaction, experiment_ids: Collection[str]
    ) -> dict[tuple[str, int], Experiment]:
        """Return these experiments by their revisions, unreadable ones left out."""
        parameters = {"experiment_ids": experiment_ids}
        rows = await transaction.execute(self._statements.experiments.experiments, parameters)
        # In a thread: parsing many plans takes long.
        read = await asyncio.to_thread(EXPERIMENT_RECORDS.facts, [row[:-1] for row in rows])
        revisions = {row[0]: row[-1] for row in rows}
        return {(each.experiment_id, revisions[each.experiment_id]): each for each in read}

    async def _groups_of(
        self, transaction: Transaction, revisions: Mapping[str, int]
    ) -> dict[str, tuple[int, frozenset[str] | None]]:
        """Return the groups of these experiments; reads only manifests that may have changed."""
        known = {
            id_: kept
            for id_, revision in revisions.items()
            if (kept := self._groups.get(id_)) is not None and kept[0] == revision
        }
        for chunk in chunks([id_ for id_ in revisions if id_ not in known]):
            parameters = {"experiment_ids": chunk}
            rows = await transaction.execute(self._statements.experiments.manifests, parameters)
            read = dict(GROUPS.facts(rows))
            known |= {id_: (revisions[id_], read.get(id_)) for id_ in chunk}
        return known

    async def _register(self, transaction: Transaction, experiment: Row) -> None:
        """Store a new experiment, or update the manifest of a stored one.

        Fields of a newer version stay in it.
        """
        rows = self._statements.experiments.rows([experiment])
        [stored] = await transaction.execute(self._statements.experiments.register, rows)
        if not (state := ExperimentState(stored.state)).calls_may_begin:
            raise ExperimentStopped(stopped_sentence(stored.experiment_id, state))
        EXPERIMENT_RECORDS.fact(stored)  # an unreadable manifest stays as it is
        manifest = with_fields_of(stored.manifest, experiment["manifest"])
        if manifest != stored.manifest:
            replacement = {"at_experiment_id": experiment["experiment_id"], "manifest": manifest}
            await transaction.execute(REPLACE_MANIFEST, replacement)


def _newest_first(experiment: Experiment) -> tuple[int, str]:
    return -microseconds(experiment.created_at), experiment.experiment_id
