"""The store role that keeps experiments: their plans, states and progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an experiment, in runs."""

    planned: int
    done: int
    """Runs whose last turn was scored or found unscorable, or that failed."""

    failed: int


@dataclass(frozen=True, slots=True)
class ExperimentCounts:
    """The number of experiments in each state."""

    complete: int
    exhausted: int
    """Not complete, and out of budget."""

    paused: int
    cancelled: int
    running: int
    """All others except deleted ones."""


@dataclass(frozen=True, slots=True)
class RunningExperiment:
    """The outline of an experiment that services carry out, or did until it was stopped."""

    experiment_id: str
    created_at: datetime
    planned_at: datetime | None
    """The time at which its last planned run was requested; None: never, or by an older version."""

    groups: frozenset[str]
    """The groups of its requests in the runners' queue."""

    exhausted: bool
    """Whether its budget is exhausted."""

    state: ExperimentState = ExperimentState.OPEN


class Experiments(Protocol):
    """Registers experiments, changes their states, and removes deleted ones."""

    async def register(self, experiment: Experiment) -> Experiment:
        """Store an experiment if it is new; returns it as stored.

        Of a stored experiment, the store updates the fields outside its identity (prices, limits,
        display names of models, deadline, budget) and keeps the rest, its times and its name
        included; one without a name takes the given one. It raises the priority and never lowers
        it. It keeps notes that the caller does not give, and every weighting; a submitted
        experiment stays submitted. Raises ExperimentStopped where no call may begin.

        The experiment and its budget are atomic. The store may add its conversations in further
        transactions before the method returns: repeating an interrupted call adds missing ones.
        """
        ...

    async def experiment(self, experiment_id: str) -> Experiment | None:
        """Return an experiment, or None for an unknown or deleted one."""
        ...

    async def experiments(
        self, experiment_ids: Collection[str] | None = None
    ) -> Sequence[Experiment]:
        """Return these experiments, or all, newest first, without unknown and deleted ones.

        Each takes up to a hundred kilobytes; use `outlines` for many.
        """
        ...

    async def outlines(self) -> Sequence[ExperimentOutline]:
        """Return outlines of all experiments except deleted ones, newest first.

        Reads each plan only once.
        """
        ...

    async def count_experiments(self) -> ExperimentCounts:
        """Count the experiments in each state."""
        ...

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        """Return the states of these experiments, deleted ones included, unknown ones left out."""
        ...

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        """Change the state of an experiment, if the present state allows it.

        Returns the present state: unchanged if the change is not allowed, and OPEN instead of
        RESUMED where the services have nothing to request again. Once this has returned, the store
        grants no lease for a stopped experiment. It neither lists a deleted experiment nor stores
        facts of it; `delete_rows` removes the stored ones. Raises StoreError for an unknown
        experiment.

        The store compares and changes the state atomically.
        """
        ...

    async def pin(self, experiment_id: str, at: datetime | None) -> None:
        """Pin an experiment for the default leaderboard, or unpin it with None; `register` keeps
        the pin.

        The store replaces the pin atomically, and changes its revision. Raises StoreError for an
        unknown or deleted experiment.
        """
        ...

    async def delete_rows(self, experiment_id: str) -> int:
        """Remove some rows of a deleted experiment; returns their number, 0 once all are gone.

        Other experiments keep their rows. The caller repeats the call until it returns 0: each call
        takes a moment, so that other callers get their turns. Rows are independent of each other.
        """
        ...

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        """Return the experiments whose rows may go: deleted ones with rows left, and those that
        were complete at that time.
        """
        ...

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        """Note the time at which every run of the plan was requested. The first time stays."""
        ...

    async def running(self) -> Sequence[RunningExperiment]:
        """Return the submitted experiments that are neither complete nor deleted, newest first.

        Paused and cancelled ones are among them, since their requests may still be in a queue. An
        index finds them.
        """
        ...

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        """Return the `most` newest experiments with each of these reuse keys, newest first.

        A key names a conversation, or a grader. The mapping leaves out keys of no experiment. An
        index finds them.
        """
        ...

    async def progress(self, experiment_id: str) -> Progress:
        """Return the progress of an experiment. Raises StoreError for an unknown one."""
        ...

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        """Return the progress of each of these experiments, unknown ones left out."""
        ...

    async def complete(
        self, experiment_id: str, at: datetime, stopped_after: int | None = None
    ) -> datetime | None:
        """Mark an experiment as complete if it is; returns the time of completion, or None.

        It is complete when every planned run is done and no stored response lacks its score;
        those of side runs need none. The first caller's time stays, and every later caller gets it.

        With `stopped_after`, the runs of so many repeats and no others have to be done: from then
        on they are the planned ones, and the manifest has this number.

        Only the mark is atomic. A store that reads in several steps looks for missing runs first,
        and for missing scores afterwards.
        """
        ...
