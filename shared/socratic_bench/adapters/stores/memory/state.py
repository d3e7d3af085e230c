"""What the store in memory has: the facts of every role as plain objects, and one step at a time.

A method changes them between two awaits, so that no other method sees half of a change. Stores
copy what can change on the way in and out; responses and failures cannot.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from socratic_bench.adapters.stores.records import microseconds
from socratic_bench.domain.aggregates.cell import Cell, CellKey, RunKey, ScoreKey, StoredFailure
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.fair_share import Share
from socratic_bench.domain.leasing import Account, Owner, TurnCalls
from socratic_bench.domain.pause import Pause
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import is_side_run
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.responses import RecordedFailure, TurnKey


@dataclass(slots=True)
class StoredExperiment:
    """An experiment, or the tombstone of one."""

    experiment_id: str
    manifest: Manifest | None
    """None: the experiment is deleted."""

    occasion: str | None
    profile: str
    planned_runs: int
    created_at: datetime
    completed_at: datetime | None
    state: ExperimentState
    submitted: bool
    planned_at: datetime | None = None

    def experiment(self) -> Experiment | None:
        """A copy for the caller; None for a deleted experiment."""
        if self.manifest is None:
            return None
        return Experiment(
            experiment_id=self.experiment_id,
            manifest=self.manifest.model_copy(deep=True),
            occasion=self.occasion,
            created_at=self.created_at,
            completed_at=self.completed_at,
            state=self.state,
            submitted=self.submitted,
        )


@dataclass(slots=True)
class Facts:
    """The stored facts of one experiment, registered or not."""

    conversations: dict[str, datetime] = field(default_factory=dict)
    """The experiment's creation, by the key of each of its conversations."""

    scores: dict[ScoreKey, ScoredResponse] = field(default_factory=dict)
    failures: dict[RunKey, StoredFailure] = field(default_factory=dict)
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    recorded: dict[str, RecordedFailure] = field(default_factory=dict)
    """The failures as runners recorded them, by run."""

    calls: dict[TurnKey, TurnCalls] = field(default_factory=dict)
    """The leased or answered turns."""

    ended: set[RunKey] = field(default_factory=set)
    """The runs with a score in their last turn."""

    @property
    def rows(self) -> int:
        """The number of facts: 0 once nothing is left to delete."""
        tables = (
            self.conversations,
            self.scores,
            self.failures,
            self.cells,
            self.recorded,
            self.calls,
        )
        return sum(len(table) for table in tables)


@dataclass(slots=True)
class StoreState:
    """All stored facts. Stores with the same state share them."""

    experiments: dict[str, StoredExperiment] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    responses: dict[str, dict[int, Response]] = field(default_factory=dict)
    """By run and turn."""

    owners: dict[str, Owner] = field(default_factory=dict)
    shares: defaultdict[str, dict[str, Share]] = field(default_factory=lambda: defaultdict(dict))
    """By the name of the limit and the owner."""

    pauses: dict[str, Pause] = field(default_factory=dict)
    revision: int = 0
    """Increases with each change of an experiment or a cell."""

    cell_revisions: Counter[str] = field(default_factory=Counter)
    """Increases with each change of a cell, by experiment; a deletion does not lower it."""

    def facts_of(self, experiment_id: str) -> Facts:
        """Return the facts of an experiment for reading; an unknown one gets an unkept object."""
        return self.facts.get(experiment_id) or Facts()

    def account_of(self, experiment_id: str) -> Account:
        """Return the account of an experiment; an unregistered one gets an unkept object."""
        return self.accounts.get(experiment_id) or Account()

    def facts_to_change(self, experiment_id: str) -> Facts:
        return self.facts.setdefault(experiment_id, Facts())

    def is_deleted(self, experiment_id: str) -> bool:
        stored = self.experiments.get(experiment_id)
        return stored is not None and stored.state is ExperimentState.DELETED

    def profile_of(self, experiment_id: str) -> str | None:
        """Return the profile of an experiment; None for an unregistered one."""
        stored = self.experiments.get(experiment_id)
        return None if stored is None else stored.profile

    def response(self, turn: TurnKey) -> Response | None:
        return self.responses.get(turn.run_id, {}).get(turn.turn)

    def is_scored(self, experiment_id: str, turn: TurnKey) -> bool:
        """Whether a turn has a score under the profile of its experiment."""
        profile = self.profile_of(experiment_id)
        return (
            profile is not None
            and ScoreKey(experiment_id, *turn, profile) in self.facts_of(experiment_id).scores
        )

    def unscored(self, experiment_id: str) -> Iterator[Response]:
        """Yield the responses of an experiment without a score under its profile."""
        for turn in self.facts_of(experiment_id).calls:
            response = None if is_side_run(turn.run_id) else self.response(turn)
            if response is not None and not self.is_scored(experiment_id, turn):
                yield response


def _machine_time() -> datetime:
    return datetime.now(UTC)


class MemoryRole:
    """A state, perhaps shared with other stores, and a clock."""

    def __init__(
        self, state: StoreState | None = None, now: Callable[[], datetime] | None = None
    ) -> None:
        """Without `state` the store begins empty; without `now` it reads the machine's clock."""
        self._state = StoreState() if state is None else state
        self._now = now or _machine_time
        self._in_use = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @asynccontextmanager
    async def _state_alone(self) -> AsyncIterator[StoreState]:
        """Yield the state for one step, which reads and changes it without awaiting.

        Other tasks run once before the step; a cancellation can only arrive then.
        """
        if self._closed:
            raise StoreError("memory: the store was closed; open it again")
        self._in_use += 1
        self._idle.clear()
        try:
            await asyncio.sleep(0)
            yield self._state
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()

    def _clock(self) -> int:
        """Tell the time in microseconds since 1970-01-01 UTC."""
        return microseconds(self._now())

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"memory: there is no experiment {experiment_id}")
