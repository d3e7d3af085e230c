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


class TurnKey(NamedTuple):
    """One turn of one run."""

    run_id: str
    turn: int


class Claim(NamedTuple):
    """A request for the lease of a turn."""

    turn: TurnKey
    reserve: int = 0
    """Nanodollars that the call may cost at most; 0 where its price is zero or unknown."""


@dataclass(frozen=True, slots=True)
class Leases:
    """What became of claims. A turn in neither set is held by another owner, or answered."""

    granted: frozenset[TurnKey]
    over_budget: frozenset[TurnKey]
    """What they may cost does not fit into what is left of the budget now."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What an experiment's calls cost, in nanodollars."""

    budget: int | None
    """The cap; None: there is none."""

    committed: int
    """What was spent, and what is reserved. A call that ended without saying what it cost, or whose
    runner died, counts with what it could cost at most."""

    in_flight: int
    """The part of `committed` that is reserved under leases that have not run out."""

    exhausted: bool
    """Whether a call was given up since the budget does not suffice for it. Over once the budget is
    raised or taken away."""


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
class CallCount:
    """How often models were called."""

    calls: int
    """Calls that were begun, one for each lease that was granted."""

    turns: int
    """Turns for which at least one call was begun."""


class Store(Protocol):
    """Keeps experiments, responses, scores, failures and cells."""

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

    async def complete(self, experiment_id: str, at: datetime) -> bool:
        """Mark an experiment as complete; True for exactly one caller, ever."""
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

    async def lease(
        self,
        experiment_id: str,
        claims: Collection[Claim],
        owner: str,
        now: datetime,
        until: datetime,
    ) -> Leases:
        """Take turns of an experiment for a call to their models, and reserve what that may cost.

        A turn is granted if nobody holds it, if `owner` itself does, or if the lease on it ran out
        before `now`; and if its `reserve` is 0, or the budget has room for it besides all that is
        committed: however many claim at once, no more is ever committed than the budget. Each grant
        is counted as a call. A turn whose response is stored is never granted. What an earlier
        lease of the turn reserved stays committed: its call may have been paid for.
        """
        ...

    async def give_back(self, experiment_id: str, turns: Collection[TurnKey], owner: str) -> None:
        """End leases of `owner` under which no call was made: it is as if they were not granted.

        Nothing happens for turns that `owner` does not hold, or whose response is stored.
        """
        ...

    async def release(
        self, experiment_id: str, turns: Collection[TurnKey], owner: str, *, paid: bool = False
    ) -> None:
        """End the reservations for calls of `owner` that failed, and cost nothing.

        With `paid`, what was reserved stays committed, since the calls may have been paid for; it
        only is no longer in flight. The leases stay. Nothing happens for turns that `owner` does
        not hold.
        """
        ...

    async def spending(self, experiment_id: str, now: datetime) -> Spending:
        """What an experiment's calls cost so far. Raises StoreError for one that is not there."""
        ...

    async def exhaust(self, experiment_id: str) -> None:
        """Mark the budget of an experiment as exhausted, until it is raised or taken away."""
        ...

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, now: datetime, until: datetime
    ) -> Mapping[str, int]:
        """Take parts of shared limits until a time; returns how many of each scope are `owner`'s.

        They replace what `owner` had of these scopes. The parts of all owners whose time has not
        run out by `now` never sum up to more than the total, whatever each wants: who comes late
        waits until the others, at their next claims, have come down to their fair shares (see
        `domain.fair_share`). To be called again well before `until`.
        """
        ...

    async def record(self, responses: Sequence[Response]) -> Sequence[Response]:
        """Store responses; the first write of a turn wins, and its lease is over.

        What was reserved for a turn is replaced by what its response cost, where that is known.
        Returns, in the same order, what is stored for those turns now.
        """
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
