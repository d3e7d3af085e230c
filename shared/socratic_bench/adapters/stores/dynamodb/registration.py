"""The registration of an experiment, and the removal of the items of a deleted one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import account_of
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.items import (
    MOST_ITEM_BYTES,
    Item,
    Value,
    WriteTransaction,
    at,
    key_of,
    size,
)
from socratic_bench.adapters.stores.dynamodb.listed import (
    PLANS,
    Listed,
    listed,
    listed_of_item,
    manifest_of,
    plan_item,
)
from socratic_bench.adapters.stores.dynamodb.schema import grow
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.records import record_of, with_fields_of
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import stopped_sentence
from socratic_bench.domain.leasing import Account
from socratic_bench.domain.money import nanodollars
from socratic_bench.errors import ExperimentStopped, StoreRefused, StoreUnreadable


class Stored(NamedTuple):
    """An experiment as the store has it."""

    listed: Listed
    plan: Item

    def experiment(self) -> Experiment:
        """Raises StoreUnreadable for a plan that this version cannot read."""
        row = self.listed.experiment_id, manifest_of(self.plan), self.listed
        return PLANS.fact(row)


async def register(table: DynamoTable, experiment: Experiment) -> Experiment:
    """Store an experiment, or update the stored one; returns it as stored."""
    place, plan = keys.experiment(experiment.experiment_id), keys.plan(experiment.experiment_id)
    backoff = table.backoff()
    while True:
        found = await table.get([place, plan])
        if place not in found:
            stored = await _added(table, experiment)
        else:
            present = listed_of_item(found[place])
            if not present.state.calls_may_begin:
                raise ExperimentStopped(stopped_sentence(present.experiment_id, present.state))
            if plan not in found:
                raise StoreUnreadable(
                    f"{table.name}: the plan of experiment {present.experiment_id} is missing; "
                    "restore the table from a copy"
                )
            stored = await _updated(table, Stored(present, found[plan]), experiment)
        if stored is not None:
            await _store_conversations(table, stored)
            return stored.experiment()
        await backoff.pause()


async def _added(table: DynamoTable, experiment: Experiment) -> Stored | None:
    """Store a new experiment; None: another process did."""
    new = Stored(listed(experiment), _plan(table, experiment, record_of(experiment.manifest)))
    transaction = table.transaction()
    _write(transaction, new, seen=None)
    _write_budget(transaction, experiment, new.listed)
    grow(transaction)
    if await table.commit(transaction):
        return None
    return new._replace(listed=replace(new.listed, version=1))


async def _updated(table: DynamoTable, stored: Stored, experiment: Experiment) -> Stored | None:
    """Update the fields outside an experiment's identity; None: the experiment has changed."""
    before = stored.experiment()  # an unreadable plan stays as it is
    manifest = with_fields_of(manifest_of(stored.plan), record_of(experiment.manifest))
    is_submitted = stored.listed.is_submitted or experiment.submitted
    if manifest == manifest_of(stored.plan) and is_submitted == stored.listed.is_submitted:
        return stored
    account = Account(_nanodollars(before), exhausted=stored.listed.is_exhausted)
    account.set_budget(_nanodollars(experiment))
    changed = replace(
        stored.listed,
        is_submitted=is_submitted,
        is_exhausted=account.exhausted,
    )
    new = Stored(changed, _plan(table, experiment, manifest))
    transaction = table.transaction()
    _write(transaction, new, seen=stored.listed)
    _write_budget(transaction, experiment, changed)
    grow(transaction)
    if await table.commit(transaction):
        return None
    return new._replace(listed=replace(changed, version=stored.listed.version + 1))


def _write(transaction: WriteTransaction, new: Stored, *, seen: Listed | None) -> None:
    transaction.put_version(new.listed.item(), 0 if seen is None else seen.version)
    transaction.put(new.plan)
    if new.listed.is_running and not (seen and seen.is_running):
        transaction.put(at(keys.running(new.listed.experiment_id), {}))


def _write_budget(transaction: WriteTransaction, experiment: Experiment, listed: Listed) -> None:
    """Set the state and the cap of the account; its money and its calls stay."""
    budget = _nanodollars(experiment)
    values: dict[str, Value] = {
        "state": str(listed.state),
        "profile": listed.profile,
        "exhausted": listed.is_exhausted,
        "nothing": 0,
    }
    update = (
        "SET #state = :state, #profile = :profile, #exhausted = :exhausted, "
        "#committed = if_not_exists(#committed, :nothing)"
    )
    if budget is None:
        update += " REMOVE #budget"
    else:
        update += ", #budget = :budget"
        values["budget"] = budget
    transaction.update(keys.account(listed.experiment_id), update, values=values)


def _nanodollars(experiment: Experiment) -> int | None:
    budget = experiment.manifest.budget
    return None if budget is None else nanodollars(budget)


def _plan(table: DynamoTable, experiment: Experiment, manifest: str) -> Item:
    """Raises StoreRefused for a plan that no item holds."""
    plan = plan_item(experiment.experiment_id, manifest)
    if size(plan) > MOST_ITEM_BYTES:
        raise StoreRefused(
            f"{table.name}: the plan of experiment {experiment.experiment_id} takes "
            f"{size(plan):,} bytes; an item holds {MOST_ITEM_BYTES:,}: divide the experiment"
        )
    return plan


async def _store_conversations(table: DynamoTable, stored: Stored) -> None:
    """Store the conversations of an experiment, unless all of them are stored."""
    listed = stored.listed
    if listed.are_conversations_stored:
        return
    await table.write(
        at(keys.conversation(key, listed.created_at, listed.experiment_id), {})
        for key in sorted(stored.experiment().reuse_keys)
    )
    noting = table.transaction()
    noting.put_version(replace(listed, are_conversations_stored=True).item(), listed.version)
    await table.commit(noting)  # where others changed it, a later call stores and notes them again


ITEMS_AT_A_TIME: Final = 200
"""The most items of a partition that one call removes, and with each the items of its run."""


async def delete_rows(table: DynamoTable, experiment_id: str) -> int:
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


async def _delete_some(table: DynamoTable, experiment_id: str) -> int:
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


async def _delete_conversations(table: DynamoTable, experiment_id: str) -> int:
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


async def _forget(table: DynamoTable, experiment_id: str) -> None:
    """Remove the marks of an experiment without items, and its number of calls."""
    await table.update(
        keys.account(experiment_id), "SET #calls = :none, #turns = :none", {"none": 0}
    )
    profiles = await table.query(*keys.scored_profiles(experiment_id))
    await table.write([], map(key_of, profiles))
    await table.write([], [keys.deleted(experiment_id), keys.folded_into(experiment_id)])
