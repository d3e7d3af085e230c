"""How often 95 % intervals cover the truth, over drawn benchmarks.

    python -m tests.benchmarks.interval_coverage [DRAWS]

All intervals come from the product's own functions. The first part draws `drawn_tutors`: all
vectors of each run, and `overall` as their mean. It prints a line for each tutor, with the coverage
and the mean width of its interval; then how often the interval of the difference of two such tutors
covers 0; how often it covers the truth where repeats stop once it is narrow, as `stop_when` has it,
and where as many are asked anyhow; the share of tables of eight equal tutors with a false
difference; then how often the interval of a prompt's effect over the models of a matrix covers the
truth.

The second part draws single vectors: 5 to 45 scenarios, 1 to 5 repeats (of all scenarios alike or
not), a true mean of 0.05 to 0.9, scenarios that resemble each other little or much, and scores of
three kinds: yes or no, thirds (discrete, as scores with few markers are), and continuous ones. It
prints for each kind the lowest and the highest coverage, the share of conditions whose coverage is
below 93 % or above 97 %, and the mean width; beside them the same for m +- t * error, clipped to
the scale. With 4,000 draws a coverage has a standard error of 0.4 percentage points.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Final

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.difference import paired_difference, rank_intervals
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores
from socratic_bench.domain.aggregates.statistics import (
    clustered_estimate,
    figure_estimate,
    student_t_quantile,
)
from socratic_bench.domain.aggregates.stopping import goes_on, reach
from socratic_bench.domain.experiment.manifest import FEWEST_ROUNDS
from socratic_bench.scoring.profile import CANONICAL, OVERALL
from socratic_bench.scoring.profiles import known_composition
from tests.benchmarks.drawn_tutors import (
    ALPACA_EVAL,
    EVEN,
    GOOD,
    MEDIUM,
    MRBENCH,
    By,
    Tutor,
    tutors,
)

DRAWS: Final = 4_000
LEAST: Final = 0.925
"""The least coverage of any tutor: 93 %, and room for the chance of the draws."""

TABLE: Final = 8
"""Equal tutors in a table."""

COMPOSITION: Final = known_composition(CANONICAL)
CANONICAL_VECTORS: Final = ("verbosity", "exploratory", "interrogative")
Clusters = Sequence[Sequence[float]]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Condition:
    """A kind of benchmark to draw."""

    kind: str
    scenarios: int
    repeats: int
    mean: float
    likeness: float
    """The share of the variance that scenarios account for (yes-or-no answers), 0 to 1."""

    is_uneven: bool = False
    """Whether scenarios differ in their numbers of scored runs."""

    @property
    def truth(self) -> float:
        """The true mean; clipping moves that of continuous scores."""
        return _continuous_mean(self.mean, self.likeness) if self.kind == CONTINUOUS else self.mean

    def draw(self, rng: random.Random) -> Clusters:
        """Draw the scores of each scenario."""
        score = KINDS[self.kind]
        return [
            [score(rng, chance) for _ in range(self._runs(rng))]
            for chance in (self._scenario(rng) for _ in range(self.scenarios))
        ]

    def _scenario(self, rng: random.Random) -> float:
        if self.kind == CONTINUOUS:
            return _continuous_scenario(rng, self.mean, self.likeness)
        size = (1 - self.likeness) / self.likeness
        return rng.betavariate(self.mean * size, (1 - self.mean) * size)

    def _runs(self, rng: random.Random) -> int:
        return rng.randint(1, 2 * self.repeats - 1) if self.is_uneven else self.repeats


def _yes_or_no(rng: random.Random, chance: float) -> float:
    return float(rng.random() < chance)


def _thirds(rng: random.Random, chance: float) -> float:
    return fmean(rng.random() < chance for _ in range(3))


def _continuous(rng: random.Random, chance: float) -> float:
    return round(min(1.0, max(0.0, chance + rng.gauss(0, 0.1))), 2)


CONTINUOUS: Final = "continuous"
KINDS: Final[Mapping[str, Callable[[random.Random, float], float]]] = {
    "yes or no": _yes_or_no,
    "thirds": _thirds,
    CONTINUOUS: _continuous,
}


def _continuous_scenario(rng: random.Random, mean: float, likeness: float) -> float:
    place = math.log(mean / (1 - mean)) + rng.gauss(0, 1.2 * likeness)
    return 1 / (1 + math.exp(-place))


@cache
def _continuous_mean(mean: float, likeness: float) -> float:
    rng = random.Random(1)
    return fmean(
        _continuous(rng, _continuous_scenario(rng, mean, likeness)) for _ in range(200_000)
    )


def conditions() -> Iterator[Condition]:
    """Yield every condition."""
    for kind in KINDS:
        for scenarios in (5, 8, 15, 45):
            for mean in (0.05, 0.1, 0.3, 0.5, 0.9):
                yield Condition(kind, scenarios, 1, mean, 0.3)
                yield Condition(kind, scenarios, 3, mean, 0.3, is_uneven=True)
                for repeats in (3, 5):
                    for likeness in (0.1, 0.3, 0.5):
                        yield Condition(kind, scenarios, repeats, mean, likeness)


def as_run_scores(clusters: Clusters) -> list[RunScores]:
    """Return each scenario's scores, of runs of one turn."""
    tallies = []
    for cluster in clusters:
        tally = Tally()
        for score in cluster:
            tally.add(millionths(score))
        tallies.append(RunScores({1: tally}))
    return tallies


def ours(clusters: Clusters) -> Interval:
    """Return the interval that the leaderboard shows."""
    interval = clustered_estimate(as_run_scores(clusters)).interval
    assert interval is not None
    return interval


def plain(clusters: Clusters) -> Interval:
    """Return m +- t * error, clipped to the scale."""
    runs, groups = sum(map(len, clusters)), len(clusters)
    mean = sum(map(sum, clusters)) / runs
    squares = sum((sum(each) - len(each) * mean) ** 2 for each in clusters)
    error = math.sqrt(groups / (groups - 1) * squares) / runs
    reach = student_t_quantile(0.975, groups - 1) * error
    return max(0.0, mean - reach), min(1.0, mean + reach)


@dataclass(frozen=True)
class Measured:
    """What an interval did under one condition."""

    condition: Condition
    coverage: float
    width: float


def measure(
    condition: Condition, draws: int, interval: Callable[[Clusters], Interval] = ours
) -> Measured:
    """Draw `draws` benchmarks, always the same ones, and count how often the interval covers."""
    rng = random.Random(repr(condition))
    truth = condition.truth
    bounds = [interval(condition.draw(rng)) for _ in range(draws)]
    covered = sum(low - 1e-6 <= truth <= high + 1e-6 for low, high in bounds)
    return Measured(condition, covered / draws, fmean(high - low for low, high in bounds))


@dataclass(frozen=True)
class Covered:
    """What the intervals of a tutor did."""

    coverage: float
    width: float


def measure_tutor(tutor: Tutor, draws: int) -> Covered:
    """Draw `draws` benchmarks of a tutor, and count how often its interval covers the truth."""
    rng, truth = random.Random(repr(tutor)), tutor.truth
    found = (figure_estimate(tutor.draw(rng), tutor.vector, COMPOSITION) for _ in range(draws))
    return _covered([each.interval for each in found if each.interval is not None], truth)


@dataclass(frozen=True)
class Stopped:
    """What the intervals of a tutor did where repeats stop once they are narrow."""

    coverage: float
    width: float
    repeats: float
    narrow: float
    """The share of intervals as narrow as asked."""


def measure_stopping(tutor: Tutor, interval: float, draws: int) -> Stopped:
    """Draw benchmarks that stop at this interval, with the tutor's repeats at most."""
    rng, ends, repeats, narrow = random.Random(repr(tutor)), [], 0, 0
    for _ in range(draws):
        scores: VectorScores[str] = VectorScores()
        for number, each in enumerate(tutor.rounds(rng), start=1):
            scores.add(each)
            repeats += 1
            if number >= FEWEST_ROUNDS and not goes_on([reach(scores, COMPOSITION)], interval):
                break
        found = reach(scores, COMPOSITION)
        narrow += found is not None and found.now <= interval
        ends.append(figure_estimate(scores, OVERALL, COMPOSITION).interval or (0.0, 1.0))
    covered = _covered(ends, tutor.truth)
    return Stopped(covered.coverage, covered.width, repeats / draws, narrow / draws)


_FAILING: Final[Sequence[tuple[float, By]]] = (
    *((0.02, "runs"), (0.3, "runs"), (0.3, 0.1), (0.5, 0.3), (0.1, "scenarios")),
)
STOPPING: Final = tuple(
    (Tutor(kind, scenarios, 10, failing, by), interval)
    for kind in (EVEN, MEDIUM, GOOD, MRBENCH, ALPACA_EVAL)
    for failing, by in _FAILING
    for scenarios, interval in ((15, 0.08), (15, 0.1), (40, 0.05))
)


def measure_difference(tutor: Tutor, draws: int) -> Covered:
    """Count how often the interval of the difference of two equal tutors covers 0."""
    rng = random.Random(repr(tutor))
    found = (paired_difference(*_equal(rng, tutor, 2)) for _ in range(draws))
    return _covered([each.interval for each in found if each.interval is not None], 0.0)


def false_differences(tutor: Tutor, tables: int) -> float:
    """Return the share of tables of equal tutors in which not all share all ranks."""
    rng = random.Random(repr(tutor))
    drawn = (rank_intervals(_equal(rng, tutor, TABLE)) for _ in range(tables))
    return fmean(any(ranks != (1, TABLE) for ranks in table) for table in drawn)


def _equal(rng: random.Random, tutor: Tutor, count: int) -> list[FigureSums[str]]:
    return [FigureSums.of(tutor.draw(rng), tutor.vector, COMPOSITION) for _ in range(count)]


def _covered(bounds: Sequence[Interval], truth: float) -> Covered:
    covered = [low - 1e-6 <= truth <= high + 1e-6 for low, high in bounds]
    return Covered(fmean(covered), fmean(high - low for low, high in bounds))


@dataclass(frozen=True)
class Matrix:
    """Models under two prompts; a failed run does not ask."""

    models: int
    scenarios: int
    repeats: int
    failing: tuple[float, float]
    """The share of runs that fail under each prompt."""

    shift: float
    """How far the chance of a failure strays in a scenario under a prompt, for all models alike."""

    at_once: bool = False
    """Whether all runs of all models fail at once in a scenario."""

    @property
    def truth(self) -> float:
        """The true effect of the first prompt, less the second, on `overall`."""
        return (self.failing[1] - self.failing[0]) / 3

    def draw(self, rng: random.Random) -> list[FigureSums[str]]:
        """Draw the sums of each prompt over all models."""
        found = []
        for failing in self.failing:
            shifts = [rng.uniform(-self.shift, self.shift) for _ in range(self.scenarios)]
            if self.at_once:
                shifts = [float(rng.random() < failing) - failing for _ in shifts]
            tutors = [
                self._tutor(rng, [failing + shift for shift in shifts]) for _ in range(self.models)
            ]
            sums = [FigureSums.of(each, OVERALL, COMPOSITION) for each in tutors]
            found.append(FigureSums.mean_of(sums, [each.own.scenarios for each in sums]))
        return found

    def _tutor(self, rng: random.Random, chances: Sequence[float]) -> VectorScores[str]:
        scores: VectorScores[str] = VectorScores()
        for number, chance in enumerate(chances):
            sums = {name: Tally() for name in (*CANONICAL_VECTORS, OVERALL)}
            for _ in range(self.repeats):
                verbosity = min(1.0, rng.gauss(0.9, 0.03))
                run = (verbosity, 1.0, float(rng.random() >= chance))
                for name, each in zip(sums, (*run, fmean(run)), strict=True):
                    sums[name].add(millionths(each))
            scores.merge(f"s{number:03}", "student", 1, sums)
        return scores


MATRICES: Final = tuple(
    Matrix(models, scenarios, 2, failing, shift, at_once)
    for models in (2, 4, 8)
    for scenarios in (6, 20)
    for failing, shift, at_once in (
        ((0.3, 0.3), 0.0, False),
        ((0.3, 0.6), 0.3, False),
        ((0.02, 0.02), 0.0, False),
        ((0.02, 0.3), 0.02, False),
        ((0.05, 0.05), 0.0, True),
        ((0.1, 0.4), 0.0, True),
    )
)


def measure_matrix(matrix: Matrix, draws: int) -> Covered:
    """Draw `draws` matrices, and count how often the interval of the effect covers the truth."""
    rng = random.Random(repr(matrix))
    found = (paired_difference(*matrix.draw(rng)) for _ in range(draws))
    return _covered([each.interval for each in found if each.interval is not None], matrix.truth)


def main(draws: int = DRAWS) -> None:
    """Print the table. Raises SystemExit where a tutor's coverage is too low."""
    low = 0
    for tutor in tutors():
        found = measure_tutor(tutor, draws)
        low += found.coverage < LEAST
        print(f"{found.coverage:6.1%}, width {found.width:.3f}: {tutor}")
    for tutor in (each for each in tutors() if each.vector == OVERALL):
        found = measure_difference(tutor, draws // 4)
        print(f"{found.coverage:6.1%} of differences, width {found.width:.3f}: {tutor}")
    lost = []
    for tutor, interval in STOPPING:
        stopped = measure_stopping(tutor, interval, draws // 8)
        fixed = measure_tutor(replace(tutor, repeats=round(stopped.repeats)), draws // 8)
        low += stopped.coverage < LEAST
        lost.append(fixed.coverage - stopped.coverage)
        print(
            f"{stopped.coverage:6.1%} at a stop, {fixed.coverage:6.1%} with as many repeats "
            f"anyhow, width {stopped.width:.3f}, {stopped.narrow:.0%} within ±{interval:g} after "
            f"{stopped.repeats:.1f} repeats on average: {tutor}"
        )
    print(f"a stop costs {fmean(lost):.2%} of coverage on average, {max(lost):.1%} at most")
    for tutor in (Tutor(EVEN, 15, 3, 0.02, "runs"), Tutor(MRBENCH, 15, 3, 0.5, 0.3)):
        share = false_differences(tutor, draws // 8)
        print(f"{share:6.1%} of tables of {TABLE} have a false difference: {tutor}")
    for matrix in MATRICES:
        found = measure_matrix(matrix, draws // 4)
        low += found.coverage < LEAST
        print(f"{found.coverage:6.1%} of effects, width {found.width:.3f}: {matrix}")
    _single_vectors(draws // 2)
    if low:
        raise SystemExit(f"{low} kinds are covered in less than {LEAST:.1%} of the benchmarks")


def _single_vectors(draws: int) -> None:
    """Print a line for each kind of scores and each interval."""
    for kind in KINDS:
        chosen = [each for each in conditions() if each.kind == kind]
        for name, interval in (("ours", ours), ("m +- t * error", plain)):
            _tell(f"{kind}, {name}", [measure(each, draws, interval) for each in chosen])


def _tell(title: str, measured: Sequence[Measured]) -> None:
    rates = [each.coverage for each in measured]
    below, above = (fmean(low <= rate < high for rate in rates) for low, high in _OUTSIDE)
    print(
        f"{title}: {len(rates)} conditions, coverage {min(rates):.1%} to {max(rates):.1%}, "
        f"{below:.0%} of them below 93 %, {above:.0%} above 97 %, "
        f"mean width {fmean(each.width for each in measured):.3f}"
    )


_OUTSIDE: Final = ((0.0, 0.93), (0.97 + 1e-9, 1.1))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
