"""The store in an SQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime

from socratic_bench.adapters.sql import statements
from socratic_bench.adapters.sql.backend import backend_for
from socratic_bench.adapters.sql.batched import Lookups, Writes, chunks
from socratic_bench.adapters.sql.database import Database
from socratic_bench.adapters.sql.dialects import DIALECTS
from socratic_bench.adapters.sql.folding import Fold
from socratic_bench.adapters.sql.leasing import Leasing
from socratic_bench.adapters.sql.ledger import Ledger, costs_of
from socratic_bench.adapters.sql.records import (
    cell_of_row,
    experiment_of_row,
    microseconds,
    row_of_experiment,
    row_of_response,
    row_of_spending,
)
from socratic_bench.adapters.sql.sharing import Sharing
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.cell import Cell
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreError
from socratic_bench.ports.store import (
    CallCount,
    Claim,
    Leases,
    Progress,
    ShareClaim,
    Spending,
    TurnKey,
)


class SqlStore:
    """A Store in an SQL database; several processes may use the same one at once.

    Every method raises StoreUnavailable or StoreBroken where the database does not do its part, and
    StoreError once the store is closed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect = DIALECTS[database.dialect]
        self._writes = Writes(dialect)
        self._lookups = Lookups(dialect)

    @classmethod
    def from_url(cls, url: str) -> SqlStore:
        """The store at `sqlite:///path` or `postgresql://…`. Opens nothing yet.

        Raises InvalidSettings where `url` is no such address.
        """
        return cls(Database(backend_for(url)))

    async def prepare(self) -> None:
        await self._database.prepare()

    async def register(self, experiment: Experiment) -> Experiment:
        parameters = {"experiment_id": experiment.experiment_id}
        async with self._database.write() as transaction:
            rows = self._writes.rows([row_of_experiment(experiment)])
            await transaction.execute(self._writes.register, rows)
            budget = self._writes.rows([row_of_spending(experiment)])
            await transaction.execute(self._writes.set_budget, budget)
            [row] = await transaction.execute(statements.FIND_EXPERIMENT, parameters)
        return experiment_of_row(row)

    async def experiment(self, experiment_id: str) -> Experiment | None:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.FIND_EXPERIMENT, parameters)
        return experiment_of_row(rows[0]) if rows else None

    async def experiments(self) -> Sequence[Experiment]:
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.LIST_EXPERIMENTS)
            return [experiment_of_row(row) for row in rows]

    async def complete(self, experiment_id: str, at: datetime) -> bool:
        parameters = {"at_experiment_id": experiment_id, "at": microseconds(at)}
        async with self._database.write() as transaction:
            return bool(await transaction.execute(statements.COMPLETE, parameters))

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

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        """The stored responses of these runs; a run without any is not in the mapping."""
        async with self._database.read() as transaction:
            stored = await self._responses_of(transaction, run_ids)
        of_runs: dict[str, list[Response]] = {}
        for response in stored:
            of_runs.setdefault(response.run.run_id, []).append(response)
        return of_runs

    async def lease(
        self,
        experiment_id: str,
        claims: Collection[Claim],
        owner: str,
        now: datetime,
        until: datetime,
    ) -> Leases:
        """Claims within a budget are served in their order."""
        async with self._database.write() as transaction:
            leasing = Leasing(transaction, self._lookups, self._writes, experiment_id)
            return await leasing.lease(dict(claims), owner, now, until)

    async def give_back(self, experiment_id: str, turns: Collection[TurnKey], owner: str) -> None:
        async with self._database.write() as transaction:
            leasing = Leasing(transaction, self._lookups, self._writes, experiment_id)
            await leasing.give_back(turns, owner)

    async def release(
        self, experiment_id: str, turns: Collection[TurnKey], owner: str, *, paid: bool = False
    ) -> None:
        async with self._database.write() as transaction:
            leasing = Leasing(transaction, self._lookups, self._writes, experiment_id)
            await leasing.release(turns, owner, paid=paid)

    async def spending(self, experiment_id: str, now: datetime) -> Spending:
        parameters = {"experiment_id": experiment_id, "now": microseconds(now)}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.FIND_SPENDING, parameters)
        if not rows:
            raise self._no_experiment(experiment_id)
        [(budget, committed, in_flight, exhausted)] = rows
        return Spending(budget, committed, int(in_flight), exhausted)

    async def exhaust(self, experiment_id: str) -> None:
        """Where there is no budget, nothing happens."""
        parameters = {"at_experiment_id": experiment_id}
        async with self._database.write() as transaction:
            await transaction.execute(statements.EXHAUST, parameters)

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, now: datetime, until: datetime
    ) -> Mapping[str, int]:
        if not claims:
            return {}
        async with self._database.write() as transaction:
            sharing = Sharing(transaction, self._lookups, self._writes, owner)
            return await sharing.claim(claims, now, until)

    async def record(self, responses: Sequence[Response]) -> Sequence[Response]:
        stored: dict[TurnKey, Response] = {}
        for response in responses:
            stored.setdefault(_turn_of(response), response)
        if not stored:
            return []
        rows = self._writes.rows([row_of_response(stored[turn]) for turn in sorted(stored)])
        async with self._database.write() as transaction:
            ledger = Ledger(transaction, self._lookups)
            await ledger.lock({call.experiment_id for call in costs_of(stored.values())})
            inserted = {
                TurnKey._make(row)
                for row in await transaction.execute(self._writes.insert_responses, rows)
            }
            await ledger.settle(costs_of(stored[turn] for turn in inserted))
            earlier = stored.keys() - inserted
            for response in await self._responses_of(
                transaction, {turn.run_id for turn in earlier}
            ):
                stored[_turn_of(response)] = response
        return [stored[_turn_of(response)] for response in responses]

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """Store and fold; where a failure is taken back, its cell is returned as well.

        A cell that holds no fact that counts is no cell, and is not returned.
        """
        async with self._database.write() as transaction:
            return await Fold(transaction, self._lookups, self._writes).add(scores, failures)

    async def cells(self, experiment_ids: Collection[str] | None = None) -> Sequence[Cell]:
        async with self._database.read() as transaction:
            if experiment_ids is None:
                return [
                    cell_of_row(row) for row in await transaction.execute(statements.LIST_CELLS)
                ]
            cells: list[Cell] = []
            for chunk in chunks(sorted(set(experiment_ids))):
                rows = await transaction.execute(self._lookups.cells, {"experiment_ids": chunk})
                cells.extend(map(cell_of_row, rows))
        return cells

    async def calls(self, experiment_id: str) -> CallCount:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.CALLS_OF_EXPERIMENT, parameters)
        [(calls, turns)] = rows
        return CallCount(calls=int(calls), turns=turns)

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """In pages, each in a transaction of its own, so that a slow reader holds nothing up."""
        place = {"run_id": "", "turn": 0, "profile": ""}
        while True:
            async with self._database.read() as transaction:
                page = await transaction.execute(
                    statements.SCORE_PAGE, {"experiment_id": experiment_id, **place}
                )
            if not page:
                return
            yield [ScoredResponse.model_validate_json(row.record) for row in page]
            last = page[-1]
            place = {"run_id": last.run_id, "turn": last.turn, "profile": last.profile}

    async def failure_rows(self, experiment_id: str) -> Sequence[RunFailure]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.LIST_FAILURES, parameters)
        return [RunFailure.model_validate_json(record) for (record,) in rows]

    async def revision(self) -> str:
        async with self._database.read() as transaction:
            [(experiments, cells)] = await transaction.execute(statements.REVISION)
        return f"{experiments}-{cells}"

    async def close(self) -> None:
        await self._database.close()

    async def _responses_of(
        self, transaction: Transaction, run_ids: Collection[str]
    ) -> list[Response]:
        responses: list[Response] = []
        for chunk in chunks(run_ids):
            rows = await transaction.execute(self._lookups.responses, {"run_ids": chunk})
            responses.extend(Response.model_validate_json(record) for (record,) in rows)
        return responses

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"{self._database.name}: there is no experiment {experiment_id}")


def _turn_of(response: Response) -> TurnKey:
    return TurnKey(response.run.run_id, response.turn)
