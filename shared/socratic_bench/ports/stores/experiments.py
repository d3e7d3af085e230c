"""The role of the store that keeps experiments: their plans, their states, how far each is."""

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
    """How far an experiment is, in runs."""

    planned: int
    done: int
    """Runs whose last turn was scored or found unscorable, or that failed."""

    failed: int


@dataclass(frozen=True, slots=True)
class ExperimentCounts:
    """How many experiments are in each state."""

    complete: int
    exhausted: int
    """Not complete, and out of budget."""

    paused: int
    cancelled: int
    running: int
    """All others but the deleted ones."""


@dataclass(frozen=True, slots=True)
class RunningExperiment:
    """An experiment that services carry out, or did until it was stopped, in short."""

    experiment_id: str
    created_at: datetime
    planned_at: datetime | None
    """When the last run of its plan was requested. None: never, or by an older version."""

    model_ids: frozenset[str]
    exhausted: bool
    """Whether its budget is exhausted."""

    state: ExperimentState = ExperimentState.OPEN


class Experiments(Protocol):
    """Registers experiments, changes their states, and removes those that are deleted."""

    async def register(self, experiment: Experiment) -> Experiment:
        """Store an experiment if it is new; returns it as stored.

        Of one that is there already, the store brings up to date what is not part of its identity
        (prices, limits, display names, deadline, budget); the rest, its times included, stays; so
        do a name and notes that are not given again; one that is submitted stays so. Raises
        ExperimentStopped where no call may begin.

        The experiment and its budget are atomic. The store may add the conversations that it asks
        in further transactions, before the method returns: repeating an interrupted call adds those
        that are missing.
        """
        ...

    async def experiment(self, experiment_id: str) -> Experiment | None:
        """One experiment, or None; None for a deleted one, too."""
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

        Reads the plan of each only once.
        """
        ...

    async def count_experiments(self) -> ExperimentCounts:
        """How many experiments are in each state."""
        ...

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        """The states of those of these experiments that are there, deleted ones included."""
        ...

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        """Change the state of an experiment, if the present one may be left for `to`.

        Returns the state that it has now: another one if it could not be changed, and OPEN instead
        of RESUMED where no services have to request anything again. Once this has returned, the
        store grants no lease for a call of an experiment that is stopped. It does not list a
        deleted one any more, nor store facts of it; `delete_rows` removes those that are there.
        Raises StoreError for an experiment that is not there.

        The present state is compared and changed atomically.
        """
        ...

    async def delete_rows(self, experiment_id: str) -> int:
        """Remove some of the rows of a deleted experiment; returns how many, 0 once all are gone.

        Nothing happens for one that is not deleted. A caller repeats the call until it returns 0:
        each takes a moment, so that others get their turns. Rows are independent of each other.
        """
        ...

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        """Experiments of which rows are to go: deleted ones that have some left, and those that
        were complete at that time.
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

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        """The experiments that ask these conversations, the `most` newest of each, newest first.

        A conversation that no experiment asks is not in the mapping. Found by an index.
        """
        ...

    async def progress(self, experiment_id: str) -> Progress:
        """How far an experiment is. Raises StoreError for one that is not there."""
        ...

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        """How far each of these experiments is, those that are not there left out."""
        ...

    async def complete(self, experiment_id: str, at: datetime) -> datetime | None:
        """Mark an experiment as complete if it is; returns since when it is, or None.

        It is complete when every planned run is done and no stored response lacks its score. The
        first caller's time stays, and every later caller gets that time.

        Only the mark is atomic. A store that reads in several steps looks for runs that are missing
        first, and for scores that are missing afterwards.
        """
        ...
