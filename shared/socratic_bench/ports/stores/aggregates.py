"""The role of the store that folds scores and failures into cells, each of them once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Runs of one model that failed for the same reason."""

    model_id: str
    kind: str
    runs: int
    message: str
    """The message of one of them: that whose id is the last."""


class Aggregates(Protocol):
    """Keeps scores, failures and their cells: a cell is the fold of its rows at every moment."""

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """Store scores and failures, and add only those that are new to their cells.

        A run that ended with a response did not fail: the store keeps its failure and does not
        count it, in whichever order the two come. A run that failed more than once, tried again in
        between, failed once: at the highest turn. Returns the cells that these facts belong to, as
        they are now, changed or not, in the order of their keys, and those where a failure was
        taken back; a cell that holds no fact that counts is left out. Facts of deleted experiments
        are passed over.

        One fact and the cells that it changes are atomic: its own, and the one in which a failure
        of its run was counted. Facts are independent of each other.
        """
        ...

    async def cells(self, experiment_ids: Collection[str] | None = None) -> Sequence[Cell]:
        """The cells of these experiments, or of all, in the order of their keys."""
        ...

    def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Every stored score of an experiment, in batches, in no order."""
        ...

    def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Every stored failure of an experiment, those that do not count included.

        In batches, in the order of the runs' ids.
        """
        ...

    async def done_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        """Which of these runs need nothing more, under the profile of their experiment.

        They ended, and each response that is stored for them was scored or found unscorable. A run
        can fail, or its last turn be scored, while the score of an earlier turn is still on its
        way: if that way is cut off, the run is not done.

        A store that reads in several steps reads first which runs ended, then their responses, and
        the scores of those last.
        """
        ...

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        """How many runs of each model have ended, as the cells have it; no model without any."""
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
        """A text that changes whenever an experiment or a cell does. Cheap to ask for.

        A caller that reads it first, and cells and experiments afterwards, has read everything that
        the text stands for. It may change a moment after they do, never before.
        """
        ...
