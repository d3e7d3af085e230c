"""The removal of the items of a deleted experiment."""

from __future__ import annotations

from typing import Final

from socratic_bench.adapters.stores.dynamodb.experiments.listed import (
    PLANS,
    listed_of_item,
    manifest_of,
)
from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.batches import together
from socratic_bench.adapters.stores.dynamodb.table.items import key_of
from socratic_bench.adapters.stores.dynamodb.table.revision import grow
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.turns.changing import account_of

ITEMS_AT_A_TIME: Final = 200
"""The most items of a partition that one call removes, and with each the items of its run."""


async def delete_rows(table: Table, experiment_id: str) -> int:
    """Remove some items of a deleted experiment; returns their number, 0 once all are gone."""
    if not (await account_of(table, experiment_id)).is_deleted:
        return 0
    if not (removed := await _delete_some(table, experiment_id)):
        await _forget(table, experiment_id)
        return 0
    transaction = table.transaction()
    grow(transaction)
    await table.commit(transaction)
    return removed


async def _delete_some(table: Table, experiment_id: str) -> int:
    shards = [keys.facts(experiment_id, shard) for shard in range(keys.SHARDS)]
    for partition in (*shards, keys.failures(experiment_id)):
        if items := await table.first(partition, ITEMS_AT_A_TIME):
            runs = {str(item["run"]) for item in items}
            found = await together(table.query(keys.run(run)) for run in runs)
            of_runs = [item for run in found for item in run]
            # The marks last: they find the items of a run, and those its bodies.
            await table.bodies.delete(str(item["body"]) for item in of_runs if "body" in item)
            await table.write([], map(key_of, of_runs))
            await table.write([], map(key_of, items))
            return len(of_runs) + len(items)
    if items := await table.first(keys.cells(experiment_id), ITEMS_AT_A_TIME):
        await table.write([], map(key_of, items))
        return len(items)
    return await _delete_conversations(table, experiment_id)


async def _delete_conversations(table: Table, experiment_id: str) -> int:
    place, plan = keys.experiment(experiment_id), keys.plan(experiment_id)
    found = await table.get([place, plan])
    if plan not in found:
        return 0
    listed = listed_of_item(found[place])
    experiment = PLANS.fact((experiment_id, manifest_of(found[plan]), listed))
    conversations = [
        keys.conversation(key, listed.created_at, experiment_id) for key in experiment.reuse_keys
    ]
    await table.write([], conversations)
    await table.write([], [plan])
    return len(conversations) + 1


async def _forget(table: Table, experiment_id: str) -> None:
    """Remove the marks of an experiment without items, and its number of calls."""
    await table.update(
        keys.account(experiment_id), "SET #calls = :none, #turns = :none", {"none": 0}
    )
    profiles = await table.query(*keys.scored_profiles(experiment_id))
    await table.write([], map(key_of, profiles))
    await table.write([], [keys.deleted(experiment_id), keys.folded_into(experiment_id)])
