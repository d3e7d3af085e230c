"""The scores of a scenario's runs: means per run first, so that a run of five turns counts once.

Cells hold sums for each turn, not for each run. With R runs whose T turns are all scored, the mean
over runs of the mean of a run is the mean over turns of the mean of a turn: both are the sum of all
scores divided by R * T. Where turns are missing, since a run failed or a response was refused, the
mean over turns still weighs each turn alike. It estimates what complete runs would have scored, as
long as the lost turns are like the others of their turn; the mean of the remaining responses would
score a model that fails before its weak last turn higher than one that does not. The field calls
this a population marginal mean (Searle, Speed and Milliken 1980, "Population Marginal Means in the
Linear Model: An Alternative to Least Squares Means").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell, Tally

Cluster = TypeVar("Cluster", bound=Hashable)


@dataclass(slots=True)
class RunScores:
    """The scores of one scenario's runs, by turn, in millionths."""

    turns: dict[int, Tally] = field(default_factory=dict)

    def merge(self, turn: int, tally: Tally) -> None:
        """Add the scores of a turn."""
        own = self.turns.get(turn)
        if own is None:
            self.turns[turn] = Tally(tally.n, tally.total, tally.squares)
        else:
            own.merge(tally)

    def add(self, turn: int, millionths: int) -> None:
        """Add one score of a turn."""
        self.turns.setdefault(turn, Tally()).add(millionths)

    @property
    def scores(self) -> int:
        """The number of scored responses."""
        if len(self.turns) == 1:
            [tally] = self.turns.values()
            return tally.n
        return sum(tally.n for tally in self.turns.values())

    def responses(self) -> Tally:
        """Return the sums over the responses of all turns; nobody may change them."""
        if len(self.turns) == 1:
            [own] = self.turns.values()
            return own
        found = Tally()
        for tally in self.turns.values():
            found.merge(tally)
        return found

    @property
    def runs(self) -> int:
        """The number of runs with a score: that of the turn with the most.

        Fewer than there are, if runs have no score in different turns.
        """
        if len(self.turns) == 1:
            [tally] = self.turns.values()
            return tally.n
        return max((tally.n for tally in self.turns.values()), default=0)

    @property
    def mean(self) -> float | None:
        """The mean of a run, 0.0 to 1.0; None without a score."""
        runs = self.runs
        if runs == 0:
            return None
        total, scale = self.total()
        return total / (runs * scale) / MILLIONTHS

    def total(self) -> tuple[int, int]:
        """Return the sum over runs of the mean of a run, exactly: millionths, and their divisor."""
        filled = [tally for tally in self.turns.values() if tally.n]
        if len(filled) == 1:
            return filled[0].total, 1
        common = math.lcm(*(tally.n for tally in filled))
        sum_of_means = sum(tally.total * (common // tally.n) for tally in filled)
        total, scale = self.runs * sum_of_means, common * max(1, len(filled))
        shared = math.gcd(total, scale)
        return total // shared, scale // shared

    def repeat_variance(self) -> tuple[float, int] | None:
        """Return the variance of a run's mean among repeats, on the scale from 0 to 1, and its
        degrees of freedom; None without a turn that has two scores.

        Cells do not hold how the turns of a run vary together. Of several turns this is the most
        that the variance can be: that of turns which rise and fall together, the square of the mean
        of their standard deviations (Cauchy and Schwarz).
        """
        known = [tally for tally in self.turns.values() if tally.n > 1]
        if not known:
            return None
        deviations = (math.sqrt(_squares(tally) / (tally.n - 1)) for tally in known)
        return (math.fsum(deviations) / len(known)) ** 2, self.runs - 1


def _squares(tally: Tally) -> float:
    """Return the sum of squared differences from the mean, on the scale from 0 to 1."""
    # n * squares - total^2 is a whole number, and exact.
    return (tally.n * tally.squares - tally.total**2) / tally.n / MILLIONTHS**2


@dataclass(slots=True)
class VectorScores(Generic[Cluster]):
    """The scores of one model: of each vector and of `overall`, by cluster, such as a scenario."""

    vectors: dict[str, dict[Cluster, RunScores]] = field(default_factory=dict)
    dimensions: dict[Cluster, str] = field(default_factory=dict)
    """The dimension of each cluster."""

    def of(self, vector: str) -> Mapping[Cluster, RunScores]:
        """Return the scores of a vector; empty where it has none."""
        return self.vectors.get(vector, {})

    def merge(self, cluster: Cluster, dimension: str, turn: int, sums: Mapping[str, Tally]) -> None:
        """Add the scores of a turn of a cluster, by vector."""
        self.dimensions[cluster] = dimension
        for vector, tally in sums.items():
            if not tally.n:
                continue
            by_cluster = self.vectors.setdefault(vector, {})
            scores = by_cluster.get(cluster)
            if scores is None:
                scores = by_cluster[cluster] = RunScores()
            scores.merge(turn, tally)

    def add(self, other: VectorScores[Cluster]) -> None:
        """Add the scores of other runs."""
        for vector, by_cluster in other.vectors.items():
            for cluster, scores in by_cluster.items():
                for turn, tally in scores.turns.items():
                    self.merge(cluster, other.dimensions[cluster], turn, {vector: tally})


def run_scores(cells: Iterable[Cell], cluster: Callable[[Cell], Cluster]) -> VectorScores[Cluster]:
    """Return the scores of each vector and of `overall`, by the cluster of each cell."""
    found: VectorScores[Cluster] = VectorScores()
    for cell in cells:
        found.merge(cluster(cell), cell.dimension, cell.key.turn, cell.vectors)
    return found
