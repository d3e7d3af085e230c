"""The experiments of the SQL store, and how far each is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from socratic_bench.adapters.sql import statements
from socratic_bench.adapters.sql.batched import chunks
from socratic_bench.adapters.sql.part import SqlPart
from socratic_bench.adapters.sql.reconciling import (
    ENDED_RUNS,
    LIST_RUNNING,
    UNFOLDED_FAILURES,
    UNSCORED_RESPONSES,
)
from socratic_bench.adapters.sql.records import (
    EXPERIMENTS,
    RESPONSES,
    RUNNING_EXPERIMENTS,
    UNFOLDED,
    Row,
    microseconds,
    row_of_experiment,
    row_of_spending,
    time_at,
    with_fields_of,
)
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.store import Progress, RunningExperiment


class SqlExperimentStore(SqlPart):
    """Registers and completes experiments, and finds what they lack."""

    async def register(self, experiment: Experiment) -> Experiment:
        parameters = {"experiment_id": experiment.experiment_id}
        async with self._database.write() as transaction:
            await self._register(transaction, row_of_experiment(experiment))
            budget = self._leases.rows([row_of_spending(experiment)])
            await transaction.execute(self._leases.set_budget, budget)
            [row] = await transaction.execute(statements.FIND_EXPERIMENT, parameters)
        return EXPERIMENTS.fact(row)

    async def experiment(self, experiment_id: str) -> Experiment | None:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.FIND_EXPERIMENT, parameters)
        return EXPERIMENTS.fact(rows[0]) if rows else None

    async def experiments(self) -> Sequence[Experiment]:
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.LIST_EXPERIMENTS)
        return EXPERIMENTS.facts(rows)

    async def complete(self, experiment_id: str, at: datetime) -> datetime | None:
        of_experiment = {"experiment_id": experiment_id}
        async with self._database.write() as transaction:
            rows = await transaction.execute(statements.TAKE_COMPLETION, of_experiment)
            for completed_at, are_runs_done in rows:
                if completed_at is not None:
                    return time_at(completed_at)
                if not are_runs_done:
                    return None
            one = {**of_experiment, "limit": 1}
            if not rows or await transaction.execute(UNSCORED_RESPONSES, one):
                return None
            parameters = {"at_experiment_id": experiment_id, "at": microseconds(at)}
            await transaction.execute(statements.COMPLETE, parameters)
        return time_at(microseconds(at))

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        parameters = {"at_experiment_id": experiment_id, "at": microseconds(at)}
        async with self._database.write() as transaction:
            await transaction.execute(statements.MARK_PLANNED, parameters)

    async def running(self) -> Sequence[RunningExperiment]:
        async with self._database.read() as transaction:
            rows = await transaction.execute(LIST_RUNNING)
        return RUNNING_EXPERIMENTS.facts(rows)

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(ENDED_RUNS, parameters)
        return {model_id: int(runs) for model_id, runs in rows}

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        parameters = {"experiment_id": experiment_id, "limit": limit}
        async with self._database.read() as transaction:
            rows = await transaction.execute(UNSCORED_RESPONSES, parameters)
        return RESPONSES.facts(rows)

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        """A failure at a turn up to which the run is known to have failed has nothing to fold."""
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(UNFOLDED_FAILURES, parameters)
        unfolded = [
            failure
            for failure, folded in UNFOLDED.facts(rows)
            if folded is None or folded.turn < failure.turn
        ]
        return unfolded[:limit]

    async def progress(self, experiment_id: str) -> Progress:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.PROGRESS, parameters)
        if not rows:
            raise self._no_experiment(experiment_id)
        [(planned, done, failed)] = rows
        return Progress(planned=planned, done=int(done), failed=failed)

    async def done_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        done: set[str] = set()
        async with self._database.read() as transaction:
            for chunk in chunks(run_ids):
                parameters = {"experiment_id": experiment_id, "run_ids": chunk}
                for (run_id,) in await transaction.execute(self._lookups.done_runs, parameters):
                    done.add(run_id)
                for (run_id,) in await transaction.execute(self._lookups.runs_to_score, parameters):
                    done.discard(run_id)
        return done

    async def _register(self, transaction: Transaction, experiment: Row) -> None:
        """Store an experiment that is new, or bring the manifest of one that is there up to date.

        Fields that a newer version wrote into it stay.
        """
        rows = self._writes.rows([experiment])
        [stored] = await transaction.execute(self._writes.register, rows)
        EXPERIMENTS.fact(stored)  # what cannot be read here is not overwritten
        manifest = with_fields_of(stored.manifest, experiment["manifest"])
        if manifest != stored.manifest:
            replacement = {"at_experiment_id": experiment["experiment_id"], "manifest": manifest}
            await transaction.execute(statements.REPLACE_MANIFEST, replacement)
