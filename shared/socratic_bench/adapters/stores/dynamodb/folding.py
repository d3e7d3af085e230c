"""The fold of facts into their cells: one transaction for facts of a few groups.

A transaction expects each score to be new, and each cell to be as it was read. Where a score is
known, it is left out; where another curator changed a cell, all is read again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.cells import (
    StoredCell,
    item_of_failure,
    item_of_score,
    stored_cell,
    stored_failure,
)
from socratic_bench.adapters.stores.dynamodb.clients import chunks, together
from socratic_bench.adapters.stores.dynamodb.items import (
    MISSING,
    MOST_ACTIONS,
    VERSION,
    ItemKey,
    WriteTransaction,
)
from socratic_bench.adapters.stores.dynamodb.schema import grow
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.domain.aggregates.cell import (
    Cell,
    CellKey,
    Fold,
    RunKey,
    ScoreKey,
    StoredFailure,
    furthest,
    key_of_failure,
    key_of_score,
    outranks,
    run_of,
    score_of,
)
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse

FACTS: Final = 60
"""The most facts of a group in one transaction."""

ACTIONS: Final = 96
"""The writes that a transaction is planned for: it holds 100, and counts a change of the store."""


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Facts of one group, each once."""

    guard: CellKey
    """The cell of turn 1."""

    dimension: str
    scores: Sequence[ScoredResponse] = ()
    failures: Sequence[RunFailure] = ()

    @property
    def cells(self) -> set[CellKey]:
        """The cells of these facts."""
        return {*map(key_of_score, self.scores), *map(key_of_failure, self.failures)}

    @property
    def actions(self) -> int:
        """About the number of writes, if all facts are new."""
        cells = len(self.cells | {self.guard})
        return len(self.scores) + 3 * len(self.failures) + cells

    def halves(self) -> tuple[GroupPart, GroupPart]:
        """Return two parts with about half of the facts each, of which there are two or more."""
        facts: list[ScoredResponse | RunFailure] = [*self.scores, *self.failures]
        middle = len(facts) // 2
        return self._of(facts[:middle]), self._of(facts[middle:])

    def _of(self, facts: Sequence[ScoredResponse | RunFailure]) -> GroupPart:
        return GroupPart(
            self.guard,
            self.dimension,
            [fact for fact in facts if isinstance(fact, ScoredResponse)],
            [fact for fact in facts if isinstance(fact, RunFailure)],
        )


# All facts of a model, scenario and profile are a group: the cell of its turn 1 guards the others,
# so that one transaction at a time changes any of them.
def rounds(
    scores: Iterable[ScoredResponse], failures: Iterable[RunFailure]
) -> Iterator[list[list[GroupPart]]]:
    """Yield rounds of transactions; those of a round have different groups, and may overlap."""
    parts = [iter(_parts(*group)) for group in _groups(scores, failures)]
    while parts:
        present = [(next(each, None), each) for each in parts]
        parts = [each for part, each in present if part is not None]
        if of_round := [part for part, _ in present if part is not None]:
            yield list(_packed(of_round))


def _groups(
    scores: Iterable[ScoredResponse], failures: Iterable[RunFailure]
) -> list[tuple[list[ScoredResponse], list[RunFailure]]]:
    """Group the facts, each once: the first score of a turn, a run's failure at the last turn."""
    groups: defaultdict[CellKey, tuple[dict[ScoreKey, ScoredResponse], list[RunFailure]]] = (
        defaultdict(lambda: ({}, []))
    )
    for scored in scores:
        groups[_guard(key_of_score(scored))][0].setdefault(score_of(scored), scored)
    for failure in furthest(failures).values():
        groups[_guard(key_of_failure(failure))][1].append(failure)
    return [(list(scored.values()), failed) for scored, failed in groups.values()]


def _parts(scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]) -> Iterator[GroupPart]:
    for some in chunks(scores, FACTS):
        yield GroupPart(_guard(key_of_score(some[0])), some[0].run.dimension, scores=some)
    for failed in chunks(failures, FACTS // 2):
        guard = _guard(key_of_failure(failed[0]))
        yield GroupPart(guard, failed[0].run.dimension, failures=failed)


def _packed(parts: Iterable[GroupPart]) -> Iterator[list[GroupPart]]:
    """Yield parts together, as many as one transaction holds."""
    packed: list[GroupPart] = []
    actions = 0
    for part in parts:
        actions += part.actions
        if packed and actions > ACTIONS:
            yield packed
            packed, actions = [], part.actions
        packed.append(part)
    if packed:
        yield packed


def _guard(key: CellKey) -> CellKey:
    return key._replace(turn=1)


class GroupFolding:
    """Parts of different groups, folded together."""

    def __init__(
        self, table: DynamoTable, parts: Sequence[GroupPart], profiles: Mapping[str, str | None]
    ) -> None:
        """`profiles` are those of the experiments; None for one that is not registered."""
        self._table = table
        self._parts = parts
        self._profiles = profiles
        self._known: set[ScoreKey] = set()
        """The scores that the store has."""

    async def cells(self) -> list[Cell]:
        """Fold the new facts in; returns the present cells of all facts."""
        backoff = self._table.backoff()
        while True:
            attempt = Attempt(self._table, self._parts, self._profiles, self._known)
            await attempt.read()
            transaction = attempt.transaction()
            if len(transaction) > MOST_ACTIONS:
                return await self._in_halves()
            if not len(transaction):
                return attempt.touched
            if not (refused := await self._table.commit(transaction)):
                # Alone, for half the price; readers remove the mark of a scored turn that stayed.
                await self._table.write([], attempt.marks)
                return attempt.touched
            known = {key for place, key in attempt.new.items() if place in refused}
            self._known |= known
            if len(refused) > len(known) and len(self._parts) > 1:
                # Another curator has cells of some parts: the others need not wait for those.
                return await self._apart([[part] for part in self._parts])
            await backoff.pause()

    async def _in_halves(self) -> list[Cell]:
        if len(self._parts) == 1:
            return await self._apart([[half] for half in self._parts[0].halves()])
        middle = len(self._parts) // 2
        return await self._apart([self._parts[:middle], self._parts[middle:]])

    async def _apart(self, divided: Iterable[Sequence[GroupPart]]) -> list[Cell]:
        """Fold each of these by itself, one after the other; the last state of a cell counts."""
        cells: dict[CellKey, Cell] = {}
        for parts in divided:
            folding = GroupFolding(self._table, parts, self._profiles)
            cells |= {cell.key: cell for cell in await folding.cells()}
        return list(cells.values())


class Attempt:
    """One reading of cells and failures, and the changes that the facts make to them."""

    def __init__(
        self,
        table: DynamoTable,
        parts: Sequence[GroupPart],
        profiles: Mapping[str, str | None],
        known: Collection[ScoreKey],
    ) -> None:
        self._table = table
        self._parts = parts
        self._profiles = profiles
        self._known = known
        self._cells: dict[CellKey, StoredCell] = {}
        self._failures: dict[RunKey, StoredFailure] = {}
        self._versions: dict[RunKey, int] = {}
        """The versions of the stored failures."""

        self._ended: set[RunKey] = set()
        """The runs with a stored score of their last turn, among those that fail."""

        self.touched: list[Cell] = []
        """The cells of the facts, and those that lost a failure; known once they are applied."""

        self.new: dict[ItemKey, ScoreKey] = {}
        """The scores that are taken for new, by the keys of their items."""

        self.marks: list[ItemKey] = []
        """The marks of turns that have their score with these."""

    async def read(self) -> None:
        """Read the cells of the facts, and stored failures that the facts may change."""
        for part in self._parts:
            self._expect(part.cells | {part.guard}, part.dimension)
        await self._read_cells(list(self._cells))
        failing = {run_of(failure): failure for part in self._parts for failure in part.failures}
        runs = set(failing)
        for part in self._parts:
            if self._cells[part.guard].failures:
                runs |= {run_of(scored) for scored in part.scores if scored.last_turn}
        if runs:
            await self._read_failures(runs)
        await self._read_ended(
            run
            for run, failure in failing.items()
            if outranks(failure, stored.failure if (stored := self._failures.get(run)) else None)
        )

    def transaction(self) -> WriteTransaction:
        """Apply the facts to what was read; returns the writes."""
        transaction = self._table.transaction()
        cells = {key: stored.cell for key, stored in self._cells.items()}
        fold = Fold(cells, self._failures, self._ended)
        for part in self._parts:
            for scored in part.scores:
                self._add_score(transaction, fold, scored)
            for failure in part.failures:
                fold.add_failure(failure)
        self.touched = fold.touched
        for run in fold.written | fold.withdrawn:
            item = item_of_failure(fold.failures[run])
            transaction.put_version(item, self._versions.get(run, 0))
        if not len(transaction):
            return transaction
        new = Counter(
            key_of_failure(fold.failures[run].failure)._replace(turn=1)
            for run in fold.written - self._versions.keys()
        )
        changed = fold.changed | new.keys()
        for key in {key._replace(turn=1) for key in changed} | changed:
            stored = self._cells[key]
            stored.failed += fold.failed[key]
            stored.failures += new[key]
            transaction.put_version(stored.item(), stored.version)
        if changed:
            grow(transaction)
        return transaction

    def _expect(self, cells: Iterable[CellKey], dimension: str) -> None:
        for key in cells:
            self._cells.setdefault(key, StoredCell(Cell(key, dimension)))

    async def _read_cells(self, wanted: Collection[CellKey]) -> None:
        places = {keys.cell(key): key for key in wanted}
        for place, item in (await self._table.get(places)).items():
            key = places[place]
            self._cells[key] = stored_cell(key.experiment_id, item)

    async def _read_ended(self, runs: Iterable[RunKey]) -> None:
        wanted = list(runs)
        found = await together(self._table.query(*keys.scores_of_run(*run)) for run in wanted)
        for run, scores in zip(wanted, found, strict=True):
            if any(item.get("is_last") for item in scores):
                self._ended.add(run)

    async def _read_failures(self, runs: Collection[RunKey]) -> None:
        places = {keys.folded_failure(*run): run for run in runs}
        for place, item in (await self._table.get(places)).items():
            self._failures[places[place]] = stored_failure(item)
            self._versions[places[place]] = int(item[VERSION])
        former = [failed.failure for failed in self._failures.values()]
        unread = {key_of_failure(each): each.run.dimension for each in former}
        unread = {key: name for key, name in unread.items() if key not in self._cells}
        for key, dimension in unread.items():
            self._expect([key], dimension)
        await self._read_cells(list(unread))

    def _add_score(self, transaction: WriteTransaction, fold: Fold, scored: ScoredResponse) -> None:
        run, key = scored.run, score_of(scored)
        is_new = key not in self._known
        fold.add_score(scored, is_new=is_new)
        if is_new:
            place = keys.score(run.experiment_id, run.run_id, scored.profile, scored.turn)
            self.new[place] = key
            transaction.put(item_of_score(scored), MISSING)
            if self._profiles[run.experiment_id] in {None, scored.profile}:
                self.marks.append(keys.pending(run.experiment_id, run.run_id, scored.turn))
