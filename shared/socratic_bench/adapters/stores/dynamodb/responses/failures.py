"""The failures of runs that runners recorded, and those of them that no curator folded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.batches import together
from socratic_bench.adapters.stores.dynamodb.table.items import Item, Value, at, packed, unpacked
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.table.transaction import MISSING
from socratic_bench.adapters.stores.dynamodb.turns.changing import account_of
from socratic_bench.adapters.stores.records import Records, record_of
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.responses import RecordedFailure


def failure_of_item(item: Item) -> Sequence[Any]:
    """Return (run_id, record, retry)."""
    return str(item["run"]), unpacked(item["record"]), int(item["retry"])


def _recorded_failure(row: Sequence[Any]) -> RecordedFailure:
    _, record, retry = row
    return RecordedFailure(RunFailure.model_validate_json(record), retry)


FAILURES = Records("failed_runs", 1, _recorded_failure)


class RecordedFailures:
    """Records failures, each with a mark among the failures of its experiment."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def record(self, failures: Collection[RecordedFailure]) -> set[str]:
        """Store failures of different runs, each unless the store has one as late.

        Returns the experiments that were deleted meanwhile. Those of deleted ones are not stored.
        """
        ids = {failed.failure.run.experiment_id for failed in failures}
        kept = ids - await self._deleted_among(ids)
        await together(
            self._record(failed) for failed in failures if failed.failure.run.experiment_id in kept
        )
        return await self._deleted_among(kept)

    async def _record(self, failed: RecordedFailure) -> None:
        run = failed.failure.run
        attributes: dict[str, Value] = {
            "run": run.run_id,
            "retry": failed.retry,
            "record": packed(record_of(failed.failure)),
        }
        transaction = self._table.transaction()
        transaction.put(
            at(keys.recorded_failure(run.run_id), attributes),
            f"{MISSING} OR #retry < :retry",
            {"retry": failed.retry},
        )
        mark: dict[str, Value] = {"run": run.run_id, "retry": failed.retry}
        transaction.put(at(keys.told_failure(run.experiment_id, run.run_id), mark))
        await self._table.commit(transaction)

    async def _deleted_among(self, experiment_ids: Iterable[str]) -> set[str]:
        ids = list(experiment_ids)
        accounts = await together(account_of(self._table, id_) for id_ in ids)
        return {id_ for id_, account in zip(ids, accounts, strict=True) if account.is_deleted}

    async def unfolded(
        self, experiment_id: str, profile: str | None, limit: int
    ) -> list[RunFailure]:
        """Return recorded failures that are further on than the folded one of their run."""
        unfolded: list[RunFailure] = []
        async for marks in self._table.pages(keys.failures(experiment_id), keys.TOLD, limit=500):
            unfolded += await self._unfolded_among(experiment_id, profile, marks)
            if len(unfolded) >= limit:
                break
        return unfolded[:limit]

    async def _unfolded_among(
        self, experiment_id: str, profile: str | None, marks: Sequence[Item]
    ) -> list[RunFailure]:
        runs = [str(mark["run"]) for mark in marks]
        folded_keys = [keys.folded_failure(experiment_id, run, profile or "") for run in runs]
        found = await self._table.get([*map(keys.recorded_failure, runs), *folded_keys])
        turns = {
            run: int(found[key]["turn"])
            for run, key in zip(runs, folded_keys, strict=True)
            if key in found
        }
        rows = [found[key] for key in map(keys.recorded_failure, runs) if key in found]
        recorded = [each.failure for each in FAILURES.facts(map(failure_of_item, rows))]
        unfolded = [each for each in recorded if turns.get(each.run.run_id, 0) < each.turn]
        await self._unmark(
            {each.run.run_id for each in recorded} - _runs(unfolded), marks, experiment_id
        )
        return unfolded

    async def _unmark(self, folded: set[str], marks: Sequence[Item], experiment_id: str) -> None:
        """Remove the marks of folded failures, unless a later one was recorded meanwhile."""
        removals = []
        for mark in marks:
            if (run := str(mark["run"])) in folded:
                removal = self._table.transaction()
                removal.delete(
                    keys.told_failure(experiment_id, run),
                    "#retry = :retry",
                    {"retry": mark["retry"]},
                )
                removals.append(self._table.commit(removal))
        await together(removals)


def _runs(failures: Iterable[RunFailure]) -> set[str]:
    return {failure.run.run_id for failure in failures}
