"""The store role that folds scores and failures into cells, each fact once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


@dataclass(frozen=True, slots=True)
class FailureCount:
    """The failed runs of one model that share a class of failure."""

    model_id: str
    kind: str
    runs: int
    message: str
    """The message of one of them: the run with the last id."""


class Aggregates(Protocol):
    """Keeps scores, failures and their cells: a cell is always the fold of its rows."""

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """Store scores and failures, and add only the new ones to their cells.

        The store keeps the failure of a run that ended with a response, but does not count it, in
        either order of arrival. A run that failed more than once counts once, at the highest turn.
        Returns the present cells of these facts, changed or not, and the cells that lost a failure,
        in the order of their keys and without empty ones. The store skips facts of deleted
        experiments.

        One fact and the cells that it changes are atomic: its own, and the one that counted a
        failure of its run. Facts are independent of each other.
        """
        ...

    async def cells(
        self,
        experiment_ids: Collection[str] | None = None,
        model_id: str | None = None,
        profile: str | None = None,
    ) -> Sequence[Cell]:
        """Return the cells of these experiments, or of all, in the order of their keys.

        `model_id` chooses those of one model; the store reads no others of these experiments.
        `profile` chooses those under one profile.
        """
        ...

    def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Yield every stored score of an experiment, in batches, in no order."""
        ...

    def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Yield every stored failure of an experiment, uncounted ones included.

        They come in batches, in the order of the runs' ids.
        """
        ...

    async def scored_profiles(
        self, experiment_ids: Collection[str]
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the profiles of these experiments: each one's own first, then others by name.

        The own profile is among them before its first score, another one from its first folded
        fact on. The mapping leaves out unknown and deleted experiments. An index finds the
        profiles; no score is read.
        """
        ...

    async def done_runs(
        self, experiment_id: str, run_ids: Collection[str], profile: str | None = None
    ) -> set[str]:
        """Return those of these runs that are done under a profile; None: their experiment's own.

        They ended, and each stored response of theirs was scored or found unscorable. A run can
        fail, or its last turn be scored, before the score of an earlier turn arrives: until it
        arrives, the run is not done.

        A store that reads in several steps reads ended runs first, then their responses, and then
        the scores of those responses.
        """
        ...

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        """Count the ended runs of each model by the cells; models without one are left out."""
        ...

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        """Return those of these runs that have a stored failure, counted or not."""
        ...

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        """Count failed runs under the experiment's profile by model and class, most frequent first.

        A run does not count once it has ended with a response.
        """
        ...

    async def cell_revisions(self, experiment_ids: Collection[str]) -> Mapping[str, str]:
        """Return a text for each of these experiments that changes whenever a cell of it does.

        No text comes back later. A caller that reads it first, and cells afterwards, has read at
        least its state. A store leaves out unknown and deleted experiments, and every one whose
        changes it does not count.
        """
        ...

    async def revision(self) -> str:
        """Return a text that changes whenever an experiment or a cell does. A cheap call.

        The text may change a moment after them, never before: a caller that reads it first, and
        cells and experiments afterwards, has read at least its state.
        """
        ...
