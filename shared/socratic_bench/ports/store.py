"""The store port: what is kept, and what is promised about keeping it.

First write wins for responses; a score and a failure are counted once; a cell is the fold of its
rows at every moment. All of it holds with several processes at work at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from socratic_bench.domain.cell import Cell
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.leases import LeaseStore


class TurnKey(NamedTuple):
    """One turn of one run."""

    run_id: str
    turn: int


class RecordedFailure(NamedTuple):
    """A failure as the runner stored it, before it was published."""

    failure: RunFailure
    retry: int
    """Which request it answers: 0 is the plan's, and each request to retry the run is one more."""


class ShareClaim(NamedTuple):
    """A request for a part of a limit that several runners share."""

    scope: str
    """The name of the limit: one for everybody who shares it."""

    total: int
    """How many parts there are."""

    wants: int
    """How many of them the owner has a use for; 0 gives all back."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment is, in runs."""

    planned: int
    done: int
    """Runs whose last turn was scored or found unscorable, or that failed."""

    failed: int


@dataclass(frozen=True, slots=True)
class RunningExperiment:
    """An experiment that is not complete, in short."""

    experiment_id: str
    created_at: datetime
    planned_at: datetime | None
    """When the last run of its plan was requested. None: never, or by an older version."""

    model_ids: frozenset[str]
    exhausted: bool
    """Whether its budget is."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often models were called."""

    calls: int
    """Calls that were begun: leases that were granted and not given back."""

    turns: int
    """Turns for which at least one call was begun."""


class Store(LeaseStore, Protocol):
    """Keeps experiments, responses, scores, failures and cells, and grants leases."""

    async def prepare(self) -> None:
        """Bring the schema up to date, once however many processes do it at the same time."""
        ...

    async def register(self, experiment: Experiment) -> Experiment:
        """Store an experiment if it is new; returns it as stored.

        For one that is there already, what is not part of its identity (prices, limits, display
        names, deadline, budget) is brought up to date, and the rest, its times included, stays.
        """
        ...

    async def experiment(self, experiment_id: str) -> Experiment | None:
        """One experiment, or None."""
        ...

    async def experiments(self) -> Sequence[Experiment]:
        """All experiments, newest first."""
        ...

    async def complete(self, experiment_id: str, at: datetime) -> datetime | None:
        """Mark an experiment as complete if it is; returns since when it is, or None.

        It is complete when every planned run is done and no stored response lacks its score. The
        first caller's time stays, and every later caller gets that time.
        """
        ...

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        """Note that every run of the plan was requested. The first time stays."""
        ...

    async def running(self) -> Sequence[RunningExperiment]:
        """The experiments that are not complete, found by an index, newest first."""
        ...

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        """How many runs of each model have ended, as the cells have it; no model without any."""
        ...

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        """Stored responses without a score under the experiment's profile, at most `limit`."""
        ...

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        """Failures that the runner stored and that were not folded, at most `limit`."""
        ...

    async def progress(self, experiment_id: str) -> Progress:
        """How far an experiment is. Raises StoreError for one that is not there."""
        ...

    async def done_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        """Which of these runs need nothing more, under the profile of their experiment.

        They ended, and each response that is stored for them was scored or found unscorable. A run
        can fail, or its last turn be scored, while the score of an earlier turn is still on its
        way: if that way is cut off, the run is not done.
        """
        ...

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        """The stored responses of these runs, each run's in the order of its turns."""
        ...

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        """Take parts of shared limits for so long; returns how many of each scope are `owner`'s.

        They replace what `owner` had of these scopes. The parts of all owners whose time has not
        run out never sum up to more than the total, whatever each wants: who comes late
        waits until the others, at their next claims, have come down to their fair shares (see
        `domain.fair_share`). To be called again well before the time is over, by the store's clock.
        """
        ...

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None] = ()
    ) -> Sequence[Response]:
        """Store responses; the first write of a turn wins, whoever has a lease of it.

        `lease_ids` names, in the same order, the leases under which the calls were made; None is
        a lease that reserved nothing for a call whose cost is not known: it just ends. They are
        over: what each reserved is replaced by what its response cost, where that is known, and
        whether or not the response is the one that is stored. A lease that is over is not
        replaced a second time. Returns, in the same order, what is stored for those turns now.
        """
        ...

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures of runs. Of one run the highest `retry` stays, the first of equal ones."""
        ...

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        """The stored failures of these runs."""
        ...

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """Store scores and failures, and add only those that are new to their cells, atomically.

        A run that ended with a response did not fail: its failure is kept, but not counted, in
        whichever order the two come. A run that failed more than once, tried again in between,
        failed once: at the highest turn. Returns the cells that these facts belong to, as they are
        now, changed or not, in the order of their keys.
        """
        ...

    async def cells(self, experiment_ids: Collection[str] | None = None) -> Sequence[Cell]:
        """The cells of these experiments, or of all, in the order of their keys."""
        ...

    async def calls(self, experiment_id: str) -> CallCount:
        """How often models were called for an experiment."""
        ...

    def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Every stored score of an experiment, in batches, in no order."""
        ...

    async def failure_rows(self, experiment_id: str) -> Sequence[RunFailure]:
        """Every stored failure of an experiment, those that do not count included."""
        ...

    async def revision(self) -> str:
        """A text that changes whenever an experiment or a cell does. Cheap to ask for."""
        ...

    async def close(self) -> None:
        """Free what the store holds. Calling it twice does nothing."""
        ...
