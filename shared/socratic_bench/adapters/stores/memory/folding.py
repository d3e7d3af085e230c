"""The fold of one fact into its cell, and the withdrawal of a failure after a response."""

from __future__ import annotations

from socratic_bench.adapters.stores.memory.state import Facts, StoredFailure, StoreState
from socratic_bench.domain.aggregates.cell import Cell, CellKey, key_of_failure, key_of_score
from socratic_bench.domain.aggregates.facts import RunKey, outranks, run_of, score_of
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


class Fold:
    """One call of `Aggregates.fold`: collects the cells that its facts touch."""

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._touched: dict[CellKey, Cell] = {}

    def cells(self) -> list[Cell]:
        """The touched cells, in the order of their keys, without empty ones."""
        cells = (self._touched[key] for key in sorted(self._touched))
        return [cell for cell in cells if cell.responses]

    def add_score(self, scored: ScoredResponse) -> None:
        """Store a score and fold it in, if it is new; a last turn's score withdraws a failure."""
        if self._state.is_deleted(scored.run.experiment_id):
            return
        facts = self._state.facts_to_change(scored.run.experiment_id)
        cell = self._touch(facts, key_of_score(scored), scored.run.dimension)
        key = score_of(scored)
        if key not in facts.scores:
            facts.scores[key] = scored.model_copy(deep=True)
            cell.add_score(scored)
            self._count_change(scored.run.experiment_id)
        if scored.last_turn:
            run = run_of(scored)
            facts.ended.add(run)
            self._withdraw(facts, run)

    def add_failure(self, failure: RunFailure) -> None:
        """Store a failure that is new, or at a higher turn than the stored one of its run."""
        if self._state.is_deleted(failure.run.experiment_id):
            return
        facts = self._state.facts_to_change(failure.run.experiment_id)
        cell = self._touch(facts, key_of_failure(failure), failure.run.dimension)
        run = run_of(failure)
        stored = facts.failures.get(run)
        if stored is not None and not outranks(failure, stored.failure):
            return
        self._withdraw(facts, run)
        counted = run not in facts.ended
        facts.failures[run] = StoredFailure(failure.model_copy(deep=True), counted)
        if counted:
            cell.add_failure()
            self._count_change(failure.run.experiment_id)

    def _withdraw(self, facts: Facts, run: RunKey) -> None:
        """Take a stored failure out of its cell, if it counts."""
        if (stored := facts.failures.get(run)) is None:
            return
        failure = stored.failure
        cell = self._touch(facts, key_of_failure(failure), failure.run.dimension)
        if stored.counted:
            stored.counted = False
            cell.withdraw_failure()
            self._count_change(failure.run.experiment_id)

    def _count_change(self, experiment_id: str) -> None:
        self._state.revision += 1
        self._state.cell_revisions[experiment_id] += 1

    def _touch(self, facts: Facts, key: CellKey, dimension: str) -> Cell:
        cell = facts.cells.setdefault(key, Cell(key, dimension))
        self._touched[key] = cell
        return cell
