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
from socratic_bench.domain.experiment_state import ExperimentState
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.outline import ExperimentOutline
from socratic_bench.domain.pause import Pause, PauseNews
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.leases import LeaseStore, Spending


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


class PauseAnswer(NamedTuple):
    """How a model is paused, as the store has it."""

    pause: Pause
    """Its times are seconds from the answer on."""

    may_call: bool
    """Whether whoever asked may make a call now: one, or any number where no pause is left."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment is, in runs."""

    planned: int
    done: int
    """Runs whose last turn was scored or found unscorable, or that failed."""

    failed: int


@dataclass(frozen=True, slots=True)
class ExperimentCounts:
    """How many experiments stand how."""

    complete: int
    exhausted: int
    """Not complete, and out of budget."""

    paused: int
    cancelled: int
    running: int
    """All others but the deleted ones."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Runs of one model that failed for the same reason."""

    model_id: str
    kind: str
    runs: int
    message: str
    """What was said of one of them: that whose id is the last."""


@dataclass(frozen=True, slots=True)
class RunningExperiment:
    """An experiment that services carry out, or did until it was stopped, in short."""

    experiment_id: str
    created_at: datetime
    planned_at: datetime | None
    """When the last run of its plan was requested. None: never, or by an older version."""

    model_ids: frozenset[str]
    exhausted: bool
    """Whether its budget is."""

    state: ExperimentState = ExperimentState.OPEN


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
        names, deadline, budget) is brought up to date, and the rest, its times included, stays;
        one that is submitted stays so. Raises ExperimentStopped where no call may begin.
        """
        ...

    async def experiment(self, experiment_id: str) -> Experiment | None:
        """One experiment, or None; a deleted one is none."""
        ...

    async def experiments(
        self, experiment_ids: Collection[str] | None = None
    ) -> Sequence[Experiment]:
        """Those of these experiments that are there, or all, newest first; no deleted one.

        Each takes up to a hundred kilobytes: `outlines` is for many.
        """
        ...

    async def outlines(self) -> Sequence[ExperimentOutline]:
        """All experiments but the deleted ones, in short, newest first.

        Reads the plan of each but once.
        """
        ...

    async def count_experiments(self) -> ExperimentCounts:
        """How many experiments stand how."""
        ...

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        """The states of those of these experiments that are there, deleted ones included."""
        ...

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        """Change the state of an experiment, if the present one may be left for `to`.

        Returns the state that it has now: another one if it could not be changed, and OPEN instead
        of RESUMED where no services have to request anything again. Once this has returned, no
        call of an experiment that is stopped is granted a lease. One that is deleted is not listed
        any more, and facts of it are not stored any more; `delete_rows` removes the others. Raises
        StoreError for an experiment that is not there.
        """
        ...

    async def delete_rows(self, experiment_id: str) -> int:
        """Remove some of the rows of a deleted experiment; returns how many, 0 once all are gone.

        Nothing happens for one that is not deleted. To be called again and again: each time takes
        a moment, so that others get their turns.
        """
        ...

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        """Experiments of which rows are to go: deleted ones that have some left, and those that
        were complete at that time.
        """
        ...

    async def complete(self, experiment_id: str, at: datetime) -> datetime | None:
        """Mark an experiment as complete if it is; returns since when it is, or None.

        It is complete when every planned run is done and no stored response lacks its score. The
        first caller's time stays, and every later caller gets that time.
        """
        ...

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        """The experiments that ask these conversations, the `most` newest of each, newest first.

        A conversation that nobody asks is not in the mapping. Found by an index.
        """
        ...

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        """Note that every run of the plan was requested. The first time stays."""
        ...

    async def running(self) -> Sequence[RunningExperiment]:
        """The experiments that services carry out and that are neither complete nor deleted.

        Found by an index, newest first; paused and cancelled ones are among them, since requests
        of theirs may still be on their way.
        """
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

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        """How far each of these experiments is, those that are not there left out."""
        ...

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        """What the calls of each of these experiments cost, those that are not there left out."""
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

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        """Tell of push-backs and replies of models, and learn how each is paused, by its scope.

        What follows from news is `domain.pause.after`, by the store's clock; each scope stands once
        in it. Of several runners that want to make the one call that may be made, one may.
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

        Nothing is stored or settled for an experiment that is deleted: its responses are returned
        as they were given.
        """
        ...

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures of runs. Of one run the highest `retry` stays, the first of equal ones.

        Those of deleted experiments are passed over.
        """
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
        now, changed or not, in the order of their keys. Facts of deleted experiments are passed
        over.
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

    def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Every stored failure of an experiment, those that do not count included.

        In batches, in the order of the runs' ids.
        """
        ...

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        """Which of these runs have a stored failure, one that does not count included."""
        ...

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        """Why runs failed under the experiment's profile, by model, the most frequent kind first.

        A run does not count once it has ended with a response.
        """
        ...

    async def revision(self) -> str:
        """A text that changes whenever an experiment or a cell does. Cheap to ask for."""
        ...

    async def close(self) -> None:
        """Free what the store holds. Calling it twice does nothing."""
        ...
