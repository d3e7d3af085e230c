"""The cell: the one stored aggregate, exact sums of integers, and the fold of facts into it.

A cell holds exact integers only, so the order of arrival leaves no trace in it: the same set of
facts gives the same cell, byte for byte. Scores count in millionths.

A score counts once, by its key. A failure counts unless its run ended with a response; of several
failures of a run counts the one at the highest turn, the first of several there. So figures do not
depend on the order in which facts arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic_core import from_json

from socratic_bench.domain.identifiers import canonical_json
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import OVERALL


class ScoreKey(NamedTuple):
    """The key of a score."""

    experiment_id: str
    run_id: str
    turn: int
    profile: str


class RunKey(NamedTuple):
    """A run under a profile: the key of its end and of its failure."""

    experiment_id: str
    run_id: str
    profile: str


def score_of(scored: ScoredResponse) -> ScoreKey:
    """Return the key of a score."""
    run = scored.run
    return ScoreKey(run.experiment_id, run.run_id, scored.turn, scored.profile)


def run_of(fact: ScoredResponse | RunFailure) -> RunKey:
    """Return the run that a fact is about."""
    return RunKey(fact.run.experiment_id, fact.run.run_id, fact.profile)


def outranks(failure: RunFailure, stored: RunFailure | None) -> bool:
    """Whether a failure takes the place of the stored one of its run."""
    return stored is None or stored.turn < failure.turn


def furthest(failures: Iterable[RunFailure]) -> dict[RunKey, RunFailure]:
    """Return the failure of each run that counts, if the run did not end with a response."""
    found: dict[RunKey, RunFailure] = {}
    for failure in failures:
        if outranks(failure, found.get(run_of(failure))):
            found[run_of(failure)] = failure
    return found


MILLIONTHS = 1_000_000


def millionths(score: float) -> int:
    """Return a score as the nearest whole number of millionths, halves to even."""
    return round(score * MILLIONTHS)


class CellKey(NamedTuple):
    """The key of a cell: experiment x model x scenario x turn x profile."""

    experiment_id: str
    model_id: str
    scenario_id: str
    turn: int
    profile: str


# D-021: floating-point sums depend on the order of arrival.
@dataclass(slots=True)
class Tally:
    """A count of values, their exact sum and the exact sum of their squares."""

    n: int = 0
    total: int = 0
    squares: int = 0

    def add(self, value: int) -> None:
        self.n += 1
        self.total += value
        self.squares += value * value

    def merge(self, other: Tally) -> None:
        self.n += other.n
        self.total += other.total
        self.squares += other.squares


@dataclass(slots=True)
class Cell:
    """All facts about one model's responses to one turn of one scenario, as exact sums."""

    key: CellKey
    dimension: str
    statuses: dict[str, int] = field(default_factory=dict)
    """Responses by their status. A failed run counts as `error`, an unfinished response as its kind
    of error."""

    vectors: dict[str, Tally] = field(default_factory=dict)
    """Per vector, and for `overall`: scores in millionths."""

    not_applicable: dict[str, int] = field(default_factory=dict)
    """Scored responses that a vector did not apply to, by vector; JSON omits an empty mapping."""

    counts: dict[str, int] = field(default_factory=dict)
    """Per count of the profile: its sum over the scored responses; JSON omits an empty mapping."""

    visible_output_tokens: Tally = field(default_factory=Tally)
    reasoning_tokens: Tally = field(default_factory=Tally)
    input_tokens: Tally = field(default_factory=Tally)
    latency_ms: Tally = field(default_factory=Tally)
    cost_nanodollars: Tally = field(default_factory=Tally)
    runs_ended: int = 0
    """Runs that ended here: their last turn was scored or found unscorable, or they failed."""

    @property
    def scored(self) -> int:
        """Responses that have a score."""
        tally = self.vectors.get(OVERALL)
        return 0 if tally is None else tally.n

    @property
    def responses(self) -> int:
        """Responses that ended with any status."""
        return sum(self.statuses.values())

    def add_score(self, scored: ScoredResponse) -> None:
        """Fold in a response that was scored or found unscorable."""
        self._count(scored.error_kind or scored.status, 1)
        self.runs_ended += scored.last_turn
        if scored.vectors is not None:
            for vector, score in scored.vectors.items():
                if score is None:
                    self.not_applicable[vector] = self.not_applicable.get(vector, 0) + 1
                elif scored.overall is not None:
                    self._tally_of(vector).add(millionths(score))
        for name, count in scored.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if scored.overall is not None:
            self._tally_of(OVERALL).add(millionths(scored.overall))
        usage = scored.usage
        self.reasoning_tokens.add(usage.reasoning_tokens)
        for tally, value in (
            (self.visible_output_tokens, usage.visible_output_tokens),
            (self.input_tokens, usage.input_tokens),
            (self.latency_ms, scored.latency_ms),
            (self.cost_nanodollars, scored.cost_nanodollars),
        ):
            if value is not None:
                tally.add(value)

    def add_failure(self) -> None:
        """Fold in a run that failed here."""
        self._count(Status.ERROR, 1)
        self.runs_ended += 1

    def withdraw_failure(self) -> None:
        """Take a failure out again: the run has ended with a response after all."""
        self._count(Status.ERROR, -1)
        self.runs_ended -= 1

    def _tally_of(self, vector: str) -> Tally:
        tally = self.vectors.get(vector)
        if tally is None:
            tally = self.vectors[vector] = Tally()
        return tally

    def _count(self, status: str, step: int) -> None:
        count = self.statuses.get(status, 0) + step
        if count:
            self.statuses[str(status)] = count
        else:
            del self.statuses[str(status)]

    def merge(self, other: Cell) -> None:
        """Add the contents of `other`, whatever its key."""
        for status, count in other.statuses.items():
            total = self.statuses.get(status, 0) + count
            self.statuses[status] = total
        for vector, tally in other.vectors.items():
            self._tally_of(vector).merge(tally)
        for vector, count in other.not_applicable.items():
            self.not_applicable[vector] = self.not_applicable.get(vector, 0) + count
        for counted, count in other.counts.items():
            self.counts[counted] = self.counts.get(counted, 0) + count
        for name in _TALLIES:
            getattr(self, name).merge(getattr(other, name))
        self.runs_ended += other.runs_ended

    def copy(self) -> Cell:
        """Return an equal cell that keeps its figures when this one changes."""
        copied = Cell(self.key, self.dimension)
        copied.merge(self)
        return copied

    def contents(self) -> dict[str, Any]:
        """Return everything but the key, as JSON has it, the counts beside the other figures."""
        contents: dict[str, Any] = {name: _tally_to_list(getattr(self, name)) for name in _TALLIES}
        contents["statuses"] = self.statuses
        contents["vectors"] = {name: _tally_to_list(t) for name, t in self.vectors.items()}
        contents["runs_ended"] = self.runs_ended
        if self.not_applicable:
            contents["not_applicable"] = self.not_applicable
        if self.counts:
            contents["counts"] = self.counts
        return contents

    def to_json(self) -> str:
        """Return the contents without the key as canonical JSON: equal cells give equal text."""
        contents = self.contents()
        if self.counts:
            # D-116: an older version would write the cell back without its counts.
            counts = contents.pop("counts")
            contents = {"counts": counts, "figures": contents}
        return canonical_json(contents)

    @classmethod
    def from_json(cls, key: CellKey, dimension: str, text: str) -> Cell:
        """Return the cell whose `to_json` is `text`."""
        contents = from_json(text)
        counts = contents.get("counts", {})
        contents = contents["figures"] if counts else contents
        return cls(
            key=key,
            dimension=dimension,
            statuses=contents["statuses"],
            vectors={name: Tally(*tally) for name, tally in contents["vectors"].items()},
            not_applicable=contents.get("not_applicable", {}),
            counts=counts,
            runs_ended=contents["runs_ended"],
            **{name: Tally(*contents[name]) for name in _TALLIES},
        )


_TALLIES = (
    "visible_output_tokens",
    "reasoning_tokens",
    "input_tokens",
    "latency_ms",
    "cost_nanodollars",
)


def _tally_to_list(tally: Tally) -> list[int]:
    return [tally.n, tally.total, tally.squares]


def key_of_score(scored: ScoredResponse) -> CellKey:
    """Return the key of the cell that a score belongs to."""
    run = scored.run
    return CellKey(run.experiment_id, run.model_id, run.scenario_id, scored.turn, scored.profile)


def key_of_failure(failure: RunFailure) -> CellKey:
    """Return the key of the cell that a failure belongs to."""
    run = failure.run
    return CellKey(run.experiment_id, run.model_id, run.scenario_id, failure.turn, failure.profile)


class StoredFailure(NamedTuple):
    """A failure that was folded."""

    failure: RunFailure
    counted: bool
    """Whether its cell counts the failure: not if the run ended with a response."""


class Fold:
    """Folds facts into cells.

    A store hands in what it has of these cells and runs, and then writes what has changed.
    """

    def __init__(
        self,
        cells: dict[CellKey, Cell] | None = None,
        failures: dict[RunKey, StoredFailure] | None = None,
        ended: set[RunKey] | None = None,
    ) -> None:
        """`ended` are the runs with a score of their last turn. The fold changes all three."""
        self.cells = {} if cells is None else cells
        self.failures = {} if failures is None else failures
        self._ended = set() if ended is None else ended
        self._touched: set[CellKey] = set()
        self.changed: set[CellKey] = set()
        self.written: set[RunKey] = set()
        """The runs whose failure is new, or further on than the former one."""

        self.withdrawn: set[RunKey] = set()
        """The runs whose former failure no longer counts."""

        self.failed: Counter[CellKey] = Counter()
        """How many failures more, or less, each cell counts than before."""

    @property
    def touched(self) -> list[Cell]:
        """The cells of the facts and those that lost a failure, in order, without empty ones."""
        cells = (self.cells[key] for key in sorted(self._touched))
        return [cell for cell in cells if cell.responses]

    def add_score(self, scored: ScoredResponse, *, is_new: bool = True) -> None:
        """Fold a new score in. A score in the last turn of its run withdraws the run's failure."""
        cell = self._touch(key_of_score(scored), scored.run.dimension)
        if is_new:
            cell.add_score(scored)
            self.changed.add(cell.key)
        if scored.last_turn:
            self._ended.add(run_of(scored))
            self._withdraw(run_of(scored))

    def add_failure(self, failure: RunFailure) -> None:
        """Fold in a failure that outranks its run's former one; none of an ended run counts."""
        run = run_of(failure)
        cell = self._touch(key_of_failure(failure), failure.run.dimension)
        former = self.failures.get(run)
        if not outranks(failure, None if former is None else former.failure):
            return
        self._withdraw(run)
        counted = run not in self._ended
        self.failures[run] = StoredFailure(failure, counted)
        self.written.add(run)
        if counted:
            cell.add_failure()
            self._count(cell.key, 1)

    def _withdraw(self, run: RunKey) -> None:
        if (former := self.failures.get(run)) is None:
            return
        cell = self._touch(key_of_failure(former.failure), former.failure.run.dimension)
        if former.counted:
            self.failures[run] = former._replace(counted=False)
            self.withdrawn.add(run)
            cell.withdraw_failure()
            self._count(cell.key, -1)

    def _count(self, key: CellKey, failures: int) -> None:
        self.changed.add(key)
        self.failed[key] += failures

    def _touch(self, key: CellKey, dimension: str) -> Cell:
        self._touched.add(key)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(key, dimension)
        return cell


def fold(
    scores: Iterable[ScoredResponse], failures: Iterable[RunFailure]
) -> Mapping[CellKey, Cell]:
    """Fold facts, each given once, into new cells.

    A response in a run's last turn outweighs any failure of that run; of several failures of one
    run, `facts.furthest` counts. A cell of uncounted failures alone is left out.
    """
    folded = Fold()
    for scored in scores:
        folded.add_score(scored)
    for failure in furthest(failures).values():
        folded.add_failure(failure)
    return {key: cell for key, cell in folded.cells.items() if cell.responses}


def merge_into(cells: dict[CellKey, Cell], more: Mapping[CellKey, Cell]) -> None:
    """Add the cells `more`, which `cells` may share and change."""
    for key, cell in more.items():
        if key in cells:
            cells[key].merge(cell)
        else:
            cells[key] = cell
