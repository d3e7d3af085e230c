"""A store on a key-value server, as an author of another package writes it; a start for a new one.

It uses ports and rules of the domain alone, no module of `socratic_bench.adapters`. Dictionaries of
JSON strings stand for the server, a lock for its transactions: a real store replaces both. It reads
whole kinds where a real store has an index, and forgets fields of newer versions.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from socratic_bench.domain import leasing
from socratic_bench.domain.aggregates import cell as folding
from socratic_bench.domain.aggregates.cell import Cell, CellKey, StoredFailure
from socratic_bench.domain.experiment import state as states
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.fair_share import Share, after_claim
from socratic_bench.domain.leasing import SECOND, Account, LeaseAnswer, Owner, TurnCalls
from socratic_bench.domain.money import nanodollars
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.domain.provider_batch import is_batch
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure, is_side_run
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import ExperimentStopped, StoreError, StoreUnreadable
from socratic_bench.ports.stores import leases as port
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.ports.stores.experiments import ExperimentCounts, Progress, RunningExperiment
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Lease, LeaseKey, Spending
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store

Value = TypeVar("Value")
Key: TypeAlias = tuple[Any, ...]
Ids: TypeAlias = Collection[str]

PAGE = 500  # rows in one page
ALL = ""  # the partition of kinds that belong to no experiment
_form_of = cache(TypeAdapter)


class Kind(Generic[Value]):
    """The values of one kind as JSON: by partition, such as an experiment, and by key."""

    def __init__(self, name: str, form: Any) -> None:
        self._name = name
        self._form: TypeAdapter[Value] = _form_of(form)
        self.partitions: defaultdict[str, dict[Key, str]] = defaultdict(dict)

    def get(self, partition: str, key: Key) -> Value | None:
        """Return a copy of a value. Raises StoreUnreadable for one of a newer version."""
        text = self.partitions[partition].get(key)
        return None if text is None else self._read(partition, key, text)

    def put(self, partition: str, key: Key, value: Value) -> None:
        self.partitions[partition][key] = self._form.dump_json(value).decode()

    def has(self, partition: str, key: Key) -> bool:
        return key in self.partitions[partition]

    def having(self, partitions: Iterable[str], key: Key) -> list[str]:
        """Return those of the partitions that have a value with this key."""
        return [each for each in partitions if key in self.partitions[each]]

    def keys(self, partition: str) -> list[Key]:
        return sorted(self.partitions[partition])

    def items(self, partition: str) -> Iterable[tuple[Key, Value]]:
        """Yield keys and values in the order of the keys."""
        for key, text in sorted(self.partitions[partition].items()):
            yield key, self._read(partition, key, text)

    def values(self, partition: str) -> Iterable[Value]:
        return (value for _, value in self.items(partition))

    def drop(self, partition: str) -> int:
        """Delete a partition; returns the number of its values."""
        return len(self.partitions.pop(partition, ()))

    def _read(self, partition: str, key: Key, text: str) -> Value:
        try:
            return self._form.validate_json(text)
        except ValidationError as error:
            told = f"{self._name} {partition} {key}: a newer version wrote it; upgrade this one"
            raise StoreUnreadable(told) from error


@dataclass(slots=True)
class Registered:
    """An experiment, or the tombstone of one."""

    experiment_id: str
    manifest: Manifest | None  # None: the experiment is deleted
    occasion: str | None
    profile: str
    planned_runs: int
    created_at: datetime
    completed_at: datetime | None
    state: ExperimentState
    submitted: bool
    planned_at: datetime | None = None

    @classmethod
    def of(cls, new: Experiment) -> Registered:
        profile, planned_runs = new.manifest.profile, new.manifest.planned_runs
        return cls(**dict(new), profile=profile, planned_runs=planned_runs)

    def experiment(self) -> Experiment | None:
        given = {name: getattr(self, name) for name in Experiment.model_fields}
        return None if self.manifest is None else Experiment(**given)


class Server:
    """Stands for a key-value server with transactions. Stores with the same one share its data."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.experiments = Kind[Registered]("experiment", Registered)
        self.accounts = Kind[Account]("account", Account)
        self.reusable = Kind[datetime]("reuse key", datetime)
        self.calls = Kind[TurnCalls]("calls", TurnCalls)  # by leased or answered turn
        self.owners = Kind[Owner]("owner", Owner)
        self.shares = Kind[dict[str, Share]]("shares", dict[str, Share])
        self.pauses = Kind[Pause]("pause", Pause)
        self.responses = Kind[Response]("response", Response)  # by run, and turn
        self.recorded = Kind[RecordedFailure]("recorded failure", RecordedFailure)
        self.scores = Kind[ScoredResponse]("score", ScoredResponse)
        self.failures = Kind[StoredFailure]("failure", StoredFailure)
        self.ended = Kind[bool]("end", bool)  # runs with a score in their last turn
        self.contents = Kind[tuple[str, str]]("cell", tuple[str, str])  # dimension, `to_json`
        self.revisions = Kind[int]("revision", int)  # ALL: of everything

    def registered(self, id_: str) -> Registered | None:
        return self.experiments.get(ALL, (id_,))

    def change(self, stored: Registered) -> None:
        self.experiments.put(ALL, (stored.experiment_id,), stored)
        self.count_change()

    def is_deleted(self, id_: str) -> bool:
        stored = self.registered(id_)
        return stored is not None and stored.state is ExperimentState.DELETED

    def among(self, ids: Iterable[str]) -> dict[str, Registered]:
        """Return those of these experiments that are registered."""
        return {id_: stored for id_ in ids if (stored := self.registered(id_)) is not None}

    def newest_first(self) -> list[Registered]:
        every = self.experiments.values(ALL)  # in the order of their ids
        return sorted(every, key=lambda each: each.created_at, reverse=True)

    def profile_of(self, id_: str) -> str | None:
        stored = self.registered(id_)
        return None if stored is None else stored.profile

    def account(self, id_: str) -> Account:
        return self.accounts.get(ALL, (id_,)) or Account()

    def put_account(self, id_: str, account: Account) -> None:
        if self.registered(id_) is not None or account.reused:  # others have no budget
            self.accounts.put(ALL, (id_,), account)

    def holders(self) -> dict[str, Owner]:
        return {name: owner for (name,), owner in self.owners.items(ALL)}

    def cells(self, id_: str, model_id: str | None = None) -> list[Cell]:
        keys = [key for key in self.contents.keys(id_) if model_id in {None, key[0]}]
        return [self.cell(CellKey(id_, *key)) for key in keys]

    def cell(self, key: CellKey) -> Cell:
        """Return a stored cell."""
        stored = self.contents.get(key.experiment_id, key[1:])
        assert stored is not None
        return Cell.from_json(key, *stored)

    def count_change(self, id_: str = ALL, changes: int = 1) -> None:
        self.revisions.put(ALL, (id_,), self.revision(id_) + changes)

    def revision(self, id_: str = ALL) -> int:
        return self.revisions.get(ALL, (id_,)) or 0

    def unscored(self, id_: str) -> Iterable[Response]:
        """Yield the responses of an experiment without a score under its profile."""
        profile = self.profile_of(id_)
        for run_id, turn in self.calls.keys(id_):
            if is_side_run(run_id) or (profile and self.scores.has(id_, (run_id, turn, profile))):
                continue
            if response := self.responses.get(run_id, (turn,)):
                yield response

    def rows(self, id_: str) -> list[Kind[Any]]:
        """Return the kinds with rows of an experiment."""
        facts: list[Kind[Any]] = [self.reusable, self.calls, self.recorded, self.scores]
        facts += [self.failures, self.ended, self.contents]
        return [kind for kind in facts if kind.partitions[id_]]


class SketchStore(Store):
    """A Store on a key-value server, with one clock for all. Each call is one transaction."""

    def __init__(self, server: Server, now: Callable[[], datetime] | None = None) -> None:
        self._server = server
        self._now = now or (lambda: datetime.now(UTC))
        self._closed = False

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Server]:
        """Yield the server for one step, which reads and writes without awaiting."""
        if self._closed:
            raise StoreError("sketch: the store was closed; open it again")
        async with self._server.lock:
            await asyncio.sleep(0)  # the way to the server
            yield self._server

    def _clock(self) -> int:
        """Tell the time in microseconds since 1970-01-01 UTC."""
        return (self._now() - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    # --- Experiments ---
    async def register(self, experiment: Experiment) -> Experiment:
        id_ = experiment.experiment_id
        async with self._transaction() as server:
            stored = server.registered(id_)
            new = Registered.of(experiment) if stored is None else _updated(stored, experiment)
            if new != stored:
                server.change(new)
            budget, account = experiment.manifest.budget, server.account(id_)
            account.set_budget(None if budget is None else nanodollars(budget))
            server.put_account(id_, account)
            for key in experiment.reuse_keys:
                server.reusable.put(id_, (key,), new.created_at)
            return (server.registered(id_) or new).experiment() or experiment  # a copy

    async def experiment(self, experiment_id: str) -> Experiment | None:
        return next(iter(await self.experiments([experiment_id])), None)

    async def experiments(self, experiment_ids: Ids | None = None) -> Sequence[Experiment]:
        async with self._transaction() as server:
            every, ids = server.newest_first(), experiment_ids
            wanted = (each for each in every if ids is None or each.experiment_id in ids)
            return [experiment for each in wanted if (experiment := each.experiment())]

    async def outlines(self) -> Sequence[ExperimentOutline]:
        return [ExperimentOutline.of(each) for each in await self.experiments()]

    async def count_experiments(self) -> ExperimentCounts:
        async with self._transaction() as server:
            counts = Counter(
                states.standing(
                    each.state,
                    is_complete=each.completed_at is not None,
                    is_exhausted=server.account(each.experiment_id).exhausted,
                )
                for each in server.experiments.values(ALL)
            )
        return ExperimentCounts(**{f.name: counts[f.name] for f in fields(ExperimentCounts)})

    async def states(self, experiment_ids: Ids) -> Mapping[str, ExperimentState]:
        async with self._transaction() as server:
            return {id_: stored.state for id_, stored in server.among(experiment_ids).items()}

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        async with self._transaction() as server:
            stored = _known(server.among([experiment_id]), experiment_id)
            has_requests = stored.submitted and stored.completed_at is None
            changed = states.decided(stored.state, to, has_requests=has_requests)
            if changed is not stored.state:
                stored.state = changed
                if changed is ExperimentState.DELETED:
                    stored.manifest = None
                    stored.completed_at = stored.completed_at or self._now()
                server.change(stored)
            return changed

    async def pin(self, experiment_id: str, at: datetime | None) -> None:
        async with self._transaction() as server:
            stored = _known(server.among([experiment_id]), experiment_id)
            if stored.manifest is None:
                raise StoreError(f"sketch: experiment {experiment_id} was deleted")
            stored.manifest = stored.manifest.model_copy(update={"pinned_at": at})
            server.change(stored)

    async def delete_rows(self, experiment_id: str) -> int:
        async with self._transaction() as server:
            kind = next(iter(server.rows(experiment_id)), None)
            if kind is None or not server.is_deleted(experiment_id):
                return 0
            if kind is server.calls:
                for run_id, _ in kind.keys(experiment_id):
                    server.responses.drop(run_id)
            server.count_change()
            return kind.drop(experiment_id)

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        async with self._transaction() as server:
            stored = server.experiments.values(ALL)
            return [s.experiment_id for s in stored if _is_deletable(server, s, completed_before)]

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        async with self._transaction() as server:
            stored = server.registered(experiment_id)
            if stored is not None and stored.planned_at is None:
                stored.planned_at = at
                server.experiments.put(ALL, (experiment_id,), stored)

    async def running(self) -> Sequence[RunningExperiment]:
        async with self._transaction() as server:
            return [
                RunningExperiment(
                    experiment_id=each.experiment_id,
                    created_at=each.created_at,
                    planned_at=each.planned_at,
                    groups=each.manifest.request_groups,
                    exhausted=server.account(each.experiment_id).exhausted,
                    state=each.state,
                )
                for each in server.newest_first()
                if each.manifest is not None and each.completed_at is None and each.submitted
            ]

    async def asked_in(self, conversation_keys: Ids, most: int) -> Mapping[str, Sequence[str]]:
        async with self._transaction() as server:
            newest = [each.experiment_id for each in server.newest_first()]
            asked = ((key, server.reusable.having(newest, (key,))) for key in conversation_keys)
            return {key: found[:most] for key, found in asked if found}

    async def progress(self, experiment_id: str) -> Progress:
        return _known(await self.progress_of([experiment_id]), experiment_id)

    async def progress_of(self, experiment_ids: Ids) -> Mapping[str, Progress]:
        progress: dict[str, Progress] = {}
        async with self._transaction() as server:
            for id_, stored in server.among(experiment_ids).items():
                failures = server.failures.items(id_)
                failed = sum(f.counted for (_, under), f in failures if under == stored.profile)
                progress[id_] = Progress(stored.planned_runs, _done(server, stored), failed)
        return progress

    async def complete(
        self, experiment_id: str, at: datetime, stopped_after: int | None = None
    ) -> datetime | None:
        async with self._transaction() as server:
            stored = server.registered(experiment_id)
            if stored is None or stored.completed_at is not None:
                return None if stored is None else stored.completed_at
            if stopped_after is not None and stored.manifest is not None:
                stopped = stored.manifest.model_copy(update={"stopped_after": stopped_after})
                stored = replace(stored, manifest=stopped, planned_runs=stopped.planned_runs)
            missing = stored.planned_runs - _done(server, stored)
            if missing > 0 or (missing and stopped_after) or any(server.unscored(experiment_id)):
                return None
            server.change(replace(stored, completed_at=at))
            return at

    # --- Leases ---
    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        answers: dict[Key, LeaseAnswer] = {}
        async with self._transaction() as server:
            now = self._clock()
            for lease in leases:
                if lease.key[:3] not in answers:
                    claimant = leasing.Claimant(owner, lease.key.lease_id, lease.reserve, may_judge)
                    answers[lease.key[:3]] = _grant(server, lease, claimant, now)
        claims = ((lease.key[:3], lease.key.lease_id) for lease in leases)
        return leasing.answers_in_order(claims, answers)

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        async with self._transaction() as server:
            for lease in leases:
                _settle(server, lease, 0, begun=False)

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        async with self._transaction() as server:
            for lease, billed in ends:
                _settle(server, lease, None if billed else 0)

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[tuple[str, str]],
        troubles: Collection[Trouble] = (),
        *,
        overdue: bool = False,
    ) -> None:
        async with self._transaction() as server:
            alive = Owner(self._clock(), False, overdue, frozenset(in_hand), tuple(troubles))
            server.owners.put(ALL, (owner,), alive)

    async def leave(self, owner: str) -> None:
        async with self._transaction() as server:
            server.owners.put(ALL, (owner,), Owner(now := self._clock(), gone=True))
            for name, each in server.holders().items():
                if each.seen_at < now - leasing.FORGOTTEN_AFTER:
                    del server.owners.partitions[ALL][name,]

    async def leave_others(self, owner: str) -> None:
        async with self._transaction() as server:
            now = self._clock()
            others = {name for name, each in server.holders().items() if not each.gone}
            for id_ in list(server.calls.partitions):
                others |= {calls.owner for calls in server.calls.values(id_) if calls.until >= now}
            for name in (each for each in others - {owner} if not is_batch(each)):
                server.owners.put(ALL, (name,), Owner(now, gone=True))

    async def waiting_turns(self, experiment_id: str) -> Sequence[port.WaitingTurn]:
        async with self._transaction() as server:
            return [
                port.WaitingTurn(LeaseKey(experiment_id, run, n, c.lease_id), c.owner, c.reserved)
                for (run, n), c in server.calls.items(experiment_id)
                if c.lease_id and is_batch(c.owner)
            ]

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        hands = (hand for owner in await self._alive() for hand in owner.in_hand)
        return Counter(model for id_, model in hands if id_ == experiment_id)

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        told = (trouble for owner in await self._alive() for trouble in owner.troubles)
        return [trouble for trouble in told if trouble.experiment_id == experiment_id]

    async def calls(self, experiment_id: str) -> CallCount:
        async with self._transaction() as server:
            counts = [each.calls for each in server.calls.values(experiment_id)]
        return CallCount(calls=sum(counts), turns=sum(count > 0 for count in counts))

    async def spending(self, experiment_id: str) -> Spending:
        return _known(await self.spending_of([experiment_id]), experiment_id)

    async def spending_of(self, experiment_ids: Ids) -> Mapping[str, Spending]:
        spending: dict[str, Spending] = {}
        async with self._transaction() as server:
            now, owners = self._clock(), server.holders()
            for id_ in experiment_ids:
                if (own := server.accounts.get(ALL, (id_,))) is not None:
                    flying = sum(each.in_flight(owners, now) for each in server.calls.values(id_))
                    spending[id_] = Spending.of(own, flying)
        return spending

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        async with self._transaction() as server:
            account = server.account(experiment_id)
            if account.left is not None and account.left < reserve:
                account.exhausted = True
                server.put_account(experiment_id, account)

    async def _alive(self) -> list[Owner]:
        async with self._transaction() as server:
            holders = server.holders().values()
            return [each for each in holders if not each.holder(self._clock()).is_dead]

    # --- SharedLimits ---
    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        granted: dict[str, int] = {}
        async with self._transaction() as server:
            until = (now := self._clock()) + round(seconds * SECOND)
            for scope, total, wants in claims:
                held = server.shares.get(ALL, (scope,)) or {}
                granted[scope], shares = after_claim(held, total, owner, wants, now, until)
                server.shares.put(ALL, (scope,), shares)
        return granted

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        answers: dict[str, PauseAnswer] = {}
        async with self._transaction() as server:
            now = self._clock() / SECOND
            for each in news:
                pause, may_call = after(server.pauses.get(ALL, (each.scope,)) or NONE, each, now)
                if each.replied or each.pushed_back or each.wants_call:
                    server.pauses.put(ALL, (each.scope,), pause)
                answers[each.scope] = PauseAnswer(pause.at(now), may_call)
        return answers

    # --- Responses ---
    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> Sequence[Response]:
        async with self._transaction() as server:
            pairs = zip(responses, lease_ids, strict=True)
            return [_record(server, response, lease_id) for response, lease_id in pairs]

    async def responses(self, run_ids: Ids) -> Mapping[str, Sequence[Response]]:
        async with self._transaction() as server:
            found = {run_id: list(server.responses.values(run_id)) for run_id in run_ids}
        return {run_id: turns for run_id, turns in found.items() if turns}

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        async with self._transaction() as server:
            return list(islice(server.unscored(experiment_id), limit))

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        async with self._transaction() as server:
            for failed in failures:
                id_, run_id = failed.failure.run.experiment_id, failed.failure.run.run_id
                known = server.recorded.get(id_, (run_id,))
                if not server.is_deleted(id_) and (known is None or known.retry < failed.retry):
                    server.recorded.put(id_, (run_id,), failed)

    async def recorded_failures(self, run_ids: Ids) -> Mapping[str, RecordedFailure]:
        async with self._transaction() as server:
            every = list(server.recorded.partitions)
            found = ((each, server.recorded.having(every, (each,))) for each in run_ids)
            rows = ((each, server.recorded.get(id_, (each,))) for each, ids in found for id_ in ids)
            return {each: failed for each, failed in rows if failed is not None}

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        async with self._transaction() as server:
            profile = server.profile_of(experiment_id) or ""
            unfolded = []
            for (run_id,), (failure, _) in server.recorded.items(experiment_id):
                folded = server.failures.get(experiment_id, (run_id, profile))
                if folding.outranks(failure, None if folded is None else folded.failure):
                    unfolded.append(failure)
            return unfolded[:limit]

    # --- Aggregates ---
    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        ids = {run.experiment_id for run in [s.run for s in scores] + [f.run for f in failures]}
        touched: list[Cell] = []
        async with self._transaction() as server:
            for id_ in sorted(ids):
                if not server.is_deleted(id_):
                    scored = (each for each in scores if each.run.experiment_id == id_)
                    failed = (each for each in failures if each.run.experiment_id == id_)
                    touched += _fold(server, id_, [*scored], [*failed])
        return touched

    async def cells(
        self,
        experiment_ids: Ids | None = None,
        model_id: str | None = None,
        profile: str | None = None,
    ) -> Sequence[Cell]:
        async with self._transaction() as server:
            wanted = list(server.contents.partitions) if experiment_ids is None else experiment_ids
            cells = [cell for id_ in sorted({*wanted}) for cell in server.cells(id_, model_id)]
        return [cell for cell in cells if cell.responses and profile in {None, cell.key.profile}]

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        async with self._transaction() as server:
            rows = list(server.scores.values(experiment_id))
        for start in range(0, len(rows), PAGE):
            yield rows[start : start + PAGE]

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        async with self._transaction() as server:
            rows = [stored.failure for stored in server.failures.values(experiment_id)]
        for start in range(0, len(rows), PAGE):
            yield rows[start : start + PAGE]

    async def scored_profiles(self, experiment_ids: Ids) -> Mapping[str, tuple[str, ...]]:
        async with self._transaction() as server:
            return {
                id_: (stored.profile, *sorted(found - {stored.profile}))
                for id_, stored in server.among(experiment_ids).items()
                if stored.manifest is not None
                for found in [{profile for *_, profile in server.contents.keys(id_)}]
            }

    async def done_runs(
        self, experiment_id: str, run_ids: Ids, profile: str | None = None
    ) -> set[str]:
        async with self._transaction() as server:
            under = profile or server.profile_of(experiment_id) or ""
            return {each for each in run_ids if _is_done(server, experiment_id, each, under)}

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        runs: Counter[str] = Counter()
        async with self._transaction() as server:
            own, cells = server.profile_of(experiment_id), server.cells(experiment_id)
        for cell in cells:
            runs[cell.key.model_id] += cell.runs_ended if cell.key.profile == own else 0
        return +runs

    async def failed_runs(self, experiment_id: str, run_ids: Ids) -> set[str]:
        async with self._transaction() as server:
            return {id_ for id_, _ in server.failures.keys(experiment_id) if id_ in run_ids}

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        of_kinds: defaultdict[tuple[str, str], list[RunFailure]] = defaultdict(list)
        async with self._transaction() as server:
            own = server.profile_of(experiment_id)
            for (run_id, profile), (failure, _) in server.failures.items(experiment_id):
                turns = server.responses.values(run_id)
                if profile == own and not any(each.last_turn for each in turns):
                    of_kinds[failure.run.model_id, failure.kind].append(failure)
        counts = [FailureCount(*key, len(f), f[-1].message) for key, f in of_kinds.items()]
        return sorted(counts, key=lambda each: (each.model_id, -each.runs, each.kind))

    async def cell_revisions(self, experiment_ids: Ids) -> Mapping[str, str]:
        async with self._transaction() as server:
            known = server.among(experiment_ids).items()
            return {id_: str(server.revision(id_)) for id_, stored in known if stored.manifest}

    async def revision(self) -> str:
        async with self._transaction() as server:
            return str(server.revision())

    async def ping(self) -> None:
        async with self._transaction():
            pass

    prepare = check_readable = ping

    async def close(self) -> None:
        self._closed = True
        async with self._server.lock:
            pass


# Rules that the domain does not have, so that every store writes them.


def _known(found: Mapping[str, Value], experiment_id: str) -> Value:
    if (value := found.get(experiment_id)) is not None:
        return value
    raise StoreError(f"sketch: there is no experiment {experiment_id}")


def _updated(stored: Registered, given: Experiment) -> Registered:
    """Return a stored experiment with the given fields outside its identity."""
    if not stored.state.calls_may_begin or stored.manifest is None:
        raise ExperimentStopped(states.stopped_sentence(stored.experiment_id, stored.state))
    manifest = given.manifest.keeping(stored.manifest)
    return replace(stored, manifest=manifest, submitted=stored.submitted or given.submitted)


def _done(server: Server, stored: Registered) -> int:
    """Count the runs that ended under the experiment's profile."""
    cells = server.cells(stored.experiment_id)
    return sum(cell.runs_ended for cell in cells if cell.key.profile == stored.profile)


def _is_deletable(server: Server, stored: Registered, completed_before: datetime | None) -> bool:
    if stored.state is ExperimentState.DELETED:
        return any(server.rows(stored.experiment_id))
    at = stored.completed_at
    return at is not None and completed_before is not None and at < completed_before


def _grant(server: Server, lease: Lease, claimant: leasing.Claimant, now: int) -> LeaseAnswer:
    """Lease a turn if the rule of leases allows it."""
    id_, run_id, turn, _ = lease.key
    stored, account = server.registered(id_), server.account(id_)
    calls = server.calls.get(id_, (run_id, turn)) or TurnCalls()
    held = calls.open(server.holders(), now)
    may_call = stored is None or stored.state.calls_may_begin
    is_answered = server.responses.has(run_id, (turn,))
    known = leasing.TurnStanding(may_call, is_answered, held, account.left)
    answer = leasing.answer_to(claimant, known)
    if answer is LeaseAnswer.GRANTED and not (held and held.is_of(claimant)):
        account.commit(lease.reserve, id_)
        until = now + round(lease.seconds * SECOND)
        calls.lease(claimant.lease_id, claimant.owner, until, lease.reserve)
        server.put_account(id_, account)
        server.calls.put(id_, (run_id, turn), calls)
    return answer


def _settle(server: Server, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
    """End a lease; returns whether it was open. Without a cost its reservation stays committed."""
    id_, run_id, turn, lease_id = lease
    calls, account = server.calls.get(id_, (run_id, turn)) or TurnCalls(), server.account(id_)
    if (reserved := calls.reserved_under(lease_id)) is None:
        return False
    if cost is not None:
        account.pay(cost, id_, reserved=reserved)
    calls.end(lease_id, begun=begun)
    server.put_account(id_, account)
    server.calls.put(id_, (run_id, turn), calls)
    return True


def _record(server: Server, response: Response, lease_id: str | None) -> Response:
    """Store a response and settle the lease of its call; returns the stored response."""
    id_, run_id, turn = response.run.experiment_id, response.run.run_id, response.turn
    if server.is_deleted(id_):
        return response
    charged, is_stored = response.charged_nanodollars, server.responses.has(run_id, (turn,))
    if lease_id is not None or charged is not None:
        lease = LeaseKey(id_, run_id, turn, lease_id or "")
        if not _settle(server, lease, charged) and not is_stored:
            account = server.account(id_)
            account.pay(charged or 0, id_)
            account.reused += response.reused_nanodollars
            server.put_account(id_, account)
    if is_stored:
        with suppress(StoreUnreadable):
            return server.responses.get(run_id, (turn,)) or response
        return response
    if not server.calls.has(id_, (run_id, turn)):
        server.calls.put(id_, (run_id, turn), TurnCalls())
    server.responses.put(run_id, (turn,), response)
    return response


def _fold(
    server: Server, id_: str, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
) -> list[Cell]:
    """Fold facts of one experiment; returns the touched cells."""
    runs = {*map(folding.run_of, scores), *map(folding.run_of, failures)}
    stored = {run: found for run in runs if (found := server.failures.get(id_, run[1:]))}
    ended = {run for run in runs if server.ended.has(id_, run[1:])}
    keys = {*map(folding.key_of_score, scores), *map(folding.key_of_failure, failures)}
    keys |= {folding.key_of_failure(each.failure) for each in stored.values()}
    cells = {key: server.cell(key) for key in keys if server.contents.has(id_, key[1:])}
    fold = folding.Fold(cells, stored, ended)
    for scored in scores:
        key = folding.score_of(scored)[1:]
        is_new = not server.scores.has(id_, key)
        fold.add_score(scored, is_new=is_new)
        if is_new:
            server.scores.put(id_, key, scored)
        if scored.last_turn:
            server.ended.put(id_, folding.run_of(scored)[1:], True)
    for failure in failures:
        fold.add_failure(failure)
    for run in fold.written | fold.withdrawn:
        server.failures.put(id_, run[1:], fold.failures[run])
    for cell in fold.cells.values():
        server.contents.put(id_, cell.key[1:], (cell.dimension, cell.to_json()))
    server.count_change(changes=len(fold.changed))
    server.count_change(id_, len(fold.changed))
    return fold.touched


def _is_done(server: Server, id_: str, run_id: str, profile: str) -> bool:
    run = (run_id, profile)
    has_end = server.ended.has(id_, run) or server.failures.has(id_, run)
    turns = server.responses.keys(run_id)
    return has_end and all(server.scores.has(id_, (run_id, turn, profile)) for (turn,) in turns)
