"""The role `Experiments` of the store in DynamoDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.cells import progress_of_cells
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.items import SK, WriteTransaction, at
from socratic_bench.adapters.stores.dynamodb.listed import (
    PLANS,
    Listed,
    listed_of_item,
    manifest_of,
    newest_first,
    plan_item,
)
from socratic_bench.adapters.stores.dynamodb.registration import delete_rows, register
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, Now, ends_before_close
from socratic_bench.adapters.stores.dynamodb.schema import grow
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.dynamodb.turns import unscored_turns
from socratic_bench.adapters.stores.records import (
    GROUPS,
    ended_after,
    microseconds,
    time_at,
    with_pin,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState, decided, standing
from socratic_bench.ports.stores.experiments import ExperimentCounts, Progress, RunningExperiment


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
            has_requests = listed.is_submitted and listed.completed_at is None
            state = decided(listed.state, to, has_requests=has_requests)
            if state is listed.state:
                return state
            changed = replace(listed, state=state)
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
        return await delete_rows(self._table, experiment_id)

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

    def _replace(self, transaction: WriteTransaction, seen: Listed, changed: Listed) -> None:
        """Replace what lists show, and the mark of a running experiment."""
        transaction.put_version(changed.item(), seen.version)
        mark = keys.running(changed.experiment_id)
        was_running = bool(seen.version) and seen.is_running
        if changed.is_running and not was_running:
            transaction.put(at(mark, {}))
        elif was_running and not changed.is_running:
            transaction.delete(mark)


class DynamoDBExperiments(DynamoDBExperimentStates):
    """Registers and completes experiments, and reports their progress."""

    def __init__(self, table: DynamoTable, now: Now | None = None) -> None:
        super().__init__(table, now)
        self._groups: dict[str, tuple[int, frozenset[str] | None]] = {}
        """The groups of each running experiment, with its version; None: unreadable."""

        self._outlines: dict[str, tuple[int, ExperimentOutline | None]] = {}
        """The outline of every experiment, with its version; None: unreadable."""

    @ends_before_close
    async def register(self, experiment: Experiment) -> Experiment:
        return await register(self._table, experiment)

    async def experiment(self, experiment_id: str) -> Experiment | None:
        place, plan = keys.experiment(experiment_id), keys.plan(experiment_id)
        found = await self._table.get([place, plan])
        if place not in found or plan not in found:
            return None
        listed = listed_of_item(found[place])
        if listed.is_deleted:
            return None
        return PLANS.fact((experiment_id, manifest_of(found[plan]), listed))

    async def experiments(
        self, experiment_ids: Collection[str] | None = None
    ) -> Sequence[Experiment]:
        if experiment_ids is None:
            listed: Iterable[Listed] = await self._all()
        else:
            listed = (await self._listed_among(experiment_ids)).values()
        return list((await self._read_plans(newest_first(listed))).values())

    async def outlines(self) -> Sequence[ExperimentOutline]:
        listed = [each for each in newest_first(await self._all()) if not each.is_deleted]
        kept = {
            each.experiment_id: outline
            for each in listed
            if (outline := self._outlines.get(each.experiment_id)) and outline[0] == each.version
        }
        unread = [each for each in listed if each.experiment_id not in kept]
        read = await self._read_plans(unread)
        for each in unread:
            plan = read.get(each.experiment_id)
            outline_of = None if plan is None else ExperimentOutline.of(plan)
            kept[each.experiment_id] = each.version, outline_of
        self._outlines = kept
        outlines = (kept[each.experiment_id][1] for each in listed)
        return [outline for outline in outlines if outline is not None]

    async def count_experiments(self) -> ExperimentCounts:
        counts = Counter(
            standing(
                each.state,
                is_complete=each.completed_at is not None,
                is_exhausted=each.is_exhausted,
            )
            for each in await self._all()
        )
        return ExperimentCounts(
            **{each.name: counts[each.name] for each in fields(ExperimentCounts)}
        )

    @ends_before_close
    async def complete(
        self, experiment_id: str, at: datetime, stopped_after: int | None = None
    ) -> datetime | None:
        backoff = self._table.backoff()
        while True:
            listed = await self._listed(experiment_id)
            if listed is None:
                return None
            if listed.completed_at is not None:
                return time_at(listed.completed_at)
            progress = (await self._progress_of([listed]))[experiment_id]
            stopped, runs = None, progress.planned
            if stopped_after is not None:
                plan = keys.plan(experiment_id)
                found = await self._table.get([plan])
                if plan not in found:
                    return None
                stopped, runs = ended_after(manifest_of(found[plan]), runs, stopped_after)
            if progress.done < runs or (stopped is not None and progress.done > runs):
                return None
            if await unscored_turns(self._table, experiment_id, 1):
                return None
            transaction = self._table.transaction()
            completed = replace(listed, completed_at=microseconds(at), planned_runs=runs)
            self._replace(transaction, listed, completed)
            if stopped is not None:
                transaction.put(plan_item(experiment_id, stopped))
            grow(transaction)
            if not await self._table.commit(transaction):
                return time_at(microseconds(at))
            await backoff.pause()

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        wanted = list(dict.fromkeys(conversation_keys))
        found = await together(self._table.first(keys.conversations(key), most) for key in wanted)
        return {
            key: [str(item[SK]).partition("#")[2] for item in items]
            for key, items in zip(wanted, found, strict=True)
            if items
        }

    @ends_before_close
    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        backoff = self._table.backoff()
        while True:
            listed = await self._listed(experiment_id)
            if listed is None or listed.planned_at is not None:
                return
            transaction = self._table.transaction()
            self._replace(transaction, listed, replace(listed, planned_at=microseconds(at)))
            if not await self._table.commit(transaction):
                return
            await backoff.pause()

    async def running(self) -> Sequence[RunningExperiment]:
        marks = [str(item[SK]) for item in await self._table.query(keys.RUNNING)]
        listed = (await self._listed_among(marks)).values()
        running = newest_first(each for each in listed if each.is_running)
        self._groups = await self._groups_of(running)
        return [
            RunningExperiment(
                experiment_id=each.experiment_id,
                created_at=time_at(each.created_at),
                planned_at=None if each.planned_at is None else time_at(each.planned_at),
                groups=groups,
                exhausted=each.is_exhausted,
                state=each.state,
            )
            for each in running
            if (groups := self._groups[each.experiment_id][1]) is not None
        ]

    async def progress(self, experiment_id: str) -> Progress:
        if progress := (await self.progress_of([experiment_id])).get(experiment_id):
            return progress
        raise self._no_experiment(experiment_id)

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        return await self._progress_of((await self._listed_among(experiment_ids)).values())

    async def _progress_of(self, listed: Iterable[Listed]) -> dict[str, Progress]:
        experiments = list(listed)
        progress = await together(
            progress_of_cells(self._table, each.experiment_id, each.profile, each.planned_runs)
            for each in experiments
        )
        ids = (each.experiment_id for each in experiments)
        return dict(zip(ids, progress, strict=True))

    async def _read_plans(self, listed: Sequence[Listed]) -> dict[str, Experiment]:
        """Read the plans of experiments, in their order; leave out deleted and unreadable ones."""
        found = await self._table.get(keys.plan(each.experiment_id) for each in listed)
        rows = [
            (each.experiment_id, manifest_of(found[plan]), each)
            for each in listed
            if not each.is_deleted and (plan := keys.plan(each.experiment_id)) in found
        ]
        return {each.experiment_id: each for each in PLANS.facts(rows)}

    async def _groups_of(
        self, running: Sequence[Listed]
    ) -> dict[str, tuple[int, frozenset[str] | None]]:
        """Return the groups of these experiments; reads only plans that may have changed."""
        known = {
            each.experiment_id: kept
            for each in running
            if (kept := self._groups.get(each.experiment_id)) and kept[0] == each.version
        }
        unread = [each for each in running if each.experiment_id not in known]
        plans = await self._table.get(keys.plan(each.experiment_id) for each in unread)
        for each in unread:
            plan = plans.get(keys.plan(each.experiment_id))
            read = dict(GROUPS.facts([(each.experiment_id, manifest_of(plan))])) if plan else {}
            known[each.experiment_id] = each.version, read.get(each.experiment_id)
        return known
