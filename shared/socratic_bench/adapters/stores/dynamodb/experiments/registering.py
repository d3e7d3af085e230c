"""The registration of an experiment: its plan, its account and its conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from socratic_bench.adapters.stores.dynamodb.experiments.listed import (
    PLANS,
    Listed,
    listed,
    listed_of_item,
    manifest_of,
    plan_item,
)
from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import (
    MOST_ITEM_BYTES,
    Item,
    Value,
    at,
    size,
)
from socratic_bench.adapters.stores.dynamodb.table.revision import grow
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.table.transaction import Transaction
from socratic_bench.adapters.stores.records import record_of, with_fields_of
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import stopped_sentence
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


async def register(table: Table, experiment: Experiment) -> Experiment:
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


async def _added(table: Table, experiment: Experiment) -> Stored | None:
    """Store a new experiment; None: another process did."""
    new = Stored(listed(experiment), _plan(table, experiment, record_of(experiment.manifest)))
    transaction = table.transaction()
    _write(transaction, new, seen=None)
    _write_budget(transaction, experiment, new.listed)
    grow(transaction)
    if await table.commit(transaction):
        return None
    return new._replace(listed=replace(new.listed, version=1))


async def _updated(table: Table, stored: Stored, experiment: Experiment) -> Stored | None:
    """Update the fields outside an experiment's identity; None: the experiment has changed."""
    before = stored.experiment()  # an unreadable plan stays as it is
    manifest = with_fields_of(manifest_of(stored.plan), record_of(experiment.manifest))
    is_submitted = stored.listed.is_submitted or experiment.submitted
    if manifest == manifest_of(stored.plan) and is_submitted == stored.listed.is_submitted:
        return stored
    is_lifted = _is_lifted(before, experiment)
    changed = replace(
        stored.listed,
        is_submitted=is_submitted,
        is_exhausted=stored.listed.is_exhausted and not is_lifted,
    )
    new = Stored(changed, _plan(table, experiment, manifest))
    transaction = table.transaction()
    _write(transaction, new, seen=stored.listed)
    _write_budget(transaction, experiment, changed)
    grow(transaction)
    if await table.commit(transaction):
        return None
    return new._replace(listed=replace(changed, version=stored.listed.version + 1))


def _write(transaction: Transaction, new: Stored, *, seen: Listed | None) -> None:
    transaction.put_version(new.listed.item(), 0 if seen is None else seen.version)
    transaction.put(new.plan)
    if new.listed.is_running and not (seen and seen.is_running):
        transaction.put(at(keys.running(new.listed.experiment_id), {}))


def _write_budget(transaction: Transaction, experiment: Experiment, listed: Listed) -> None:
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


def _is_lifted(before: Experiment, experiment: Experiment) -> bool:
    """Whether the cap is raised or removed: the budget is then no longer exhausted."""
    old, new = _nanodollars(before), _nanodollars(experiment)
    return new is None or old is None or new > old


def _nanodollars(experiment: Experiment) -> int | None:
    budget = experiment.manifest.budget
    return None if budget is None else nanodollars(budget)


def _plan(table: Table, experiment: Experiment, manifest: str) -> Item:
    """Raises StoreRefused for a plan that no item holds."""
    plan = plan_item(experiment.experiment_id, manifest)
    if size(plan) > MOST_ITEM_BYTES:
        raise StoreRefused(
            f"{table.name}: the plan of experiment {experiment.experiment_id} takes "
            f"{size(plan):,} bytes; an item holds {MOST_ITEM_BYTES:,}: divide the experiment"
        )
    return plan


async def _store_conversations(table: Table, stored: Stored) -> None:
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
