"""The division of a fold's facts into transactions.

All facts of a model, scenario and profile are a group: the cell of its turn 1 guards the others, so
that one transaction at a time changes any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.adapters.stores.dynamodb.table.batches import chunks
from socratic_bench.domain.aggregates.cell import CellKey, key_of_failure, key_of_score
from socratic_bench.domain.aggregates.facts import ScoreKey, furthest, score_of
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse

FACTS: Final = 60
"""The most facts of a group in one transaction."""

ACTIONS: Final = 96
"""The writes that a transaction is planned for: it holds 100, and counts a change of the store."""


@dataclass(frozen=True, slots=True)
class Part:
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

    def halves(self) -> tuple[Part, Part]:
        """Return two parts with about half of the facts each, of which there are two or more."""
        facts: list[ScoredResponse | RunFailure] = [*self.scores, *self.failures]
        middle = len(facts) // 2
        return self._of(facts[:middle]), self._of(facts[middle:])

    def _of(self, facts: Sequence[ScoredResponse | RunFailure]) -> Part:
        return Part(
            self.guard,
            self.dimension,
            [fact for fact in facts if isinstance(fact, ScoredResponse)],
            [fact for fact in facts if isinstance(fact, RunFailure)],
        )


def rounds(
    scores: Iterable[ScoredResponse], failures: Iterable[RunFailure]
) -> Iterator[list[list[Part]]]:
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


def _parts(scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]) -> Iterator[Part]:
    for some in chunks(scores, FACTS):
        yield Part(_guard(key_of_score(some[0])), some[0].run.dimension, scores=some)
    for failed in chunks(failures, FACTS // 2):
        guard = _guard(key_of_failure(failed[0]))
        yield Part(guard, failed[0].run.dimension, failures=failed)


def _packed(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield parts together, as many as one transaction holds."""
    packed: list[Part] = []
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
