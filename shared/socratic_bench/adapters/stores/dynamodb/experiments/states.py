"""The states and pins of experiments in DynamoDB, and the removal of deleted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from socratic_bench.adapters.stores.dynamodb.experiments import deleting
from socratic_bench.adapters.stores.dynamodb.experiments.listed import (
    Listed,
    listed_of_item,
    manifest_of,
    plan_item,
)
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, ends_before_close
from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import SK, at
from socratic_bench.adapters.stores.dynamodb.table.revision import grow
from socratic_bench.adapters.stores.dynamodb.table.transaction import Transaction
from socratic_bench.adapters.stores.records import microseconds, with_pin
from socratic_bench.domain.experiment.state import LEFT_FOR, ExperimentState


class DynamoDBExperimentStates(DynamoDBRole):
    """Stops, resumes and pins experiments, and removes deleted ones."""

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        listed = await self._listed_among(experiment_ids)
        return {id_: each.state for id_, each in listed.items()}

    @ends_before_close
    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        backoff = self._table.backoff()
        while True:
            listed = await self._listed(experiment_id)
            if listed is None:
                raise self._no_experiment(experiment_id)
            if listed.state not in LEFT_FOR[to]:
                return listed.state
            changed = replace(listed, state=_reached(listed, to))
            if changed.is_deleted and changed.completed_at is None:
                changed = replace(changed, completed_at=self._now())
            transaction = self._table.transaction()
            self._replace(transaction, listed, changed)
            transaction.update(
                keys.account(experiment_id),
                "SET #state = :state",
                values={"state": str(changed.state)},
            )
            if changed.is_deleted:
                transaction.put(at(keys.deleted(experiment_id), {}))
            grow(transaction)
            if not await self._table.commit(transaction):
                return changed.state
            await backoff.pause()

    @ends_before_close
    async def pin(self, experiment_id: str, at: datetime | None) -> None:
        place, plan = keys.experiment(experiment_id), keys.plan(experiment_id)
        backoff = self._table.backoff()
        while True:
            found = await self._table.get([place, plan])
            if place not in found or plan not in found:
                raise self._no_experiment(experiment_id)
            listed = listed_of_item(found[place])
            if listed.is_deleted:
                raise self._no_experiment(experiment_id)
            transaction = self._table.transaction()
            transaction.put_version(listed.item(), listed.version)
            transaction.put(plan_item(experiment_id, with_pin(manifest_of(found[plan]), at)))
            grow(transaction)
            if not await self._table.commit(transaction):
                return
            await backoff.pause()

    @ends_before_close
    async def delete_rows(self, experiment_id: str) -> int:
        return await deleting.delete_rows(self._table, experiment_id)

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        deletable = [str(item[SK]) for item in await self._table.query(keys.DELETED)]
        if completed_before is not None:
            before = microseconds(completed_before)
            deletable += [
                each.experiment_id
                for each in await self._all()
                if each.completed_at is not None
                and each.completed_at < before
                and not each.is_deleted
            ]
        return deletable

    async def _all(self) -> list[Listed]:
        """Read all experiments and tombstones, in the order of their ids."""
        return [listed_of_item(item) for item in await self._table.query(keys.EXPERIMENTS)]

    async def _listed(self, experiment_id: str) -> Listed | None:
        return (await self._listed_among([experiment_id])).get(experiment_id)

    async def _listed_among(self, experiment_ids: Collection[str]) -> dict[str, Listed]:
        found = await self._table.get(map(keys.experiment, experiment_ids))
        listed = map(listed_of_item, found.values())
        return {each.experiment_id: each for each in listed}

    def _replace(self, transaction: Transaction, seen: Listed, changed: Listed) -> None:
        """Replace what lists show, and the mark of a running experiment."""
        transaction.put_version(changed.item(), seen.version)
        mark = keys.running(changed.experiment_id)
        was_running = bool(seen.version) and seen.is_running
        if changed.is_running and not was_running:
            transaction.put(at(mark, {}))
        elif was_running and not changed.is_running:
            transaction.delete(mark)


def _reached(listed: Listed, to: ExperimentState) -> ExperimentState:
    """Return OPEN instead of RESUMED where the services have nothing to request again."""
    has_requests = listed.is_submitted and listed.completed_at is None
    if to is ExperimentState.RESUMED and not has_requests:
        return ExperimentState.OPEN
    return to
