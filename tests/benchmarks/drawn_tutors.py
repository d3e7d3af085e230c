"""Tutors to draw: the vectors of each of their runs, rare failures included.

A failure sets the vector that says yes or no to 0. *Runs* fail independently of each other, and
*scenarios* as a whole; with a *likeness* runs of one scenario fail alike, as correlated answers do.
`EVEN` has verbosity around 0.97 and exploratory 1: a tutor of 0.99. The other tutors draw
verbosity and exploratory together from real answers: tutors on Bedrock that ask, the tutors of
MRBench, and the assistants of AlpacaEval. A repeat is its scenario's own answer with probability ½.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Final, Literal

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.scoring.profile import OVERALL

Smooth = tuple[float, float]
"""Verbosity and exploratory of one answer."""

ALIKE: Final = 0.5
"""The probability that a repeat is its scenario's own answer."""

_LARGE: Final = 400_000

# Forty quantiles of the real answers each, by verbosity: enough for a shape.
_GOOD: Final[Sequence[Smooth]] = (
    *((0.0, 0.5), (0.0, 1.0), (0.1, 0.5), (0.29, 0.5), (0.49, 0.33), (0.53, 1.0), (0.56, 1.0)),
    *((0.6, 1.0), (0.62, 0.5), (0.64, 0.5), (0.66, 1.0), (0.68, 0.5), (0.71, 0.5), (0.72, 1.0)),
    *((0.74, 0.5), (0.75, 1.0), (0.76, 1.0), (0.77, 1.0), (0.78, 0.5), (0.79, 1.0), (0.8, 1.0)),
    *((0.81, 1.0), (0.82, 1.0), (0.83, 0.5), (0.83, 1.0), (0.84, 1.0), (0.86, 0.5), (0.86, 1.0)),
    *((0.88, 0.5), (0.88, 1.0), (0.92, 0.5), (0.93, 0.5), (0.94, 0.5), (0.94, 1.0), (0.95, 0.5)),
    *((0.96, 0.5), (0.97, 0.5), (0.97, 0.5), (0.97, 0.5), (0.98, 0.5)),
)
_MRBENCH: Final[Sequence[Smooth]] = (
    *((0.75, 0.0), (0.84, 0.5), (0.86, 0.0), (0.87, 0.5), (0.88, 0.0), (0.88, 0.5), (0.89, 0.5)),
    *((0.9, 0.0), (0.9, 0.5), (0.9, 1.0), (0.91, 0.5), (0.91, 0.5), (0.91, 0.5), (0.92, 0.5)),
    *((0.92, 0.5), (0.92, 0.5), (0.92, 0.5), (0.93, 0.0), (0.93, 0.5), (0.93, 0.5), (0.93, 0.5)),
    *((0.94, 0.5), (0.94, 0.5), (0.94, 0.5), (0.94, 0.5), (0.94, 0.5), (0.95, 0.0), (0.95, 0.5)),
    *((0.95, 0.5), (0.95, 0.5), (0.95, 0.5), (0.96, 0.5), (0.96, 0.5), (0.96, 0.5), (0.96, 0.5)),
    *((0.97, 0.5), (0.97, 0.5), (0.97, 0.5), (0.98, 0.5), (0.99, 0.5)),
)
_ALPACA_EVAL: Final[Sequence[Smooth]] = (
    *((0.0, 0.0), (0.0, 0.5), (0.0, 0.5), (0.0, 0.5), (0.0, 1.0), (0.0, 1.0), (0.03, 0.5)),
    *((0.08, 0.5), (0.12, 0.5), (0.17, 0.5), (0.2, 0.5), (0.23, 1.0), (0.27, 1.0), (0.31, 0.0)),
    *((0.34, 0.0), (0.36, 1.0), (0.38, 1.0), (0.41, 0.0), (0.43, 0.5), (0.45, 0.5), (0.47, 0.5)),
    *((0.49, 0.5), (0.52, 0.0), (0.54, 0.5), (0.56, 0.5), (0.58, 0.5), (0.62, 0.5), (0.65, 0.5)),
    *((0.69, 0.5), (0.72, 0.5), (0.76, 0.5), (0.78, 0.5), (0.81, 0.5), (0.84, 0.5), (0.86, 0.5)),
    *((0.89, 0.5), (0.92, 0.5), (0.95, 0.5), (0.97, 0.5), (0.99, 0.5)),
)


def _normal(rng: random.Random, mean: float, spread: float) -> float:
    return min(1.0, max(0.0, rng.gauss(mean, spread)))


def _even(rng: random.Random) -> Smooth:
    return _normal(rng, 0.97, 0.0115), 1.0


def _half_open(rng: random.Random) -> Smooth:
    return _normal(rng, 0.97, 0.0115), 0.5


def _medium(rng: random.Random) -> Smooth:
    return _normal(rng, 0.85, 0.05), 1.0


def _drawn_from(answers: Sequence[Smooth]) -> Callable[[random.Random], Smooth]:
    return lambda rng: rng.choice(answers)


EVEN: Final = "0.99"
HALF_OPEN: Final = "exploratory 0.5"
MEDIUM: Final = "verbosity 0.85 ± 0.05"
GOOD: Final = "good tutors"
MRBENCH: Final = "MRBench tutors"
ALPACA_EVAL: Final = "AlpacaEval"

_KINDS: Final[dict[str, Callable[[random.Random], Smooth]]] = {
    EVEN: _even,
    HALF_OPEN: _half_open,
    MEDIUM: _medium,
    GOOD: _drawn_from(_GOOD),
    MRBENCH: _drawn_from(_MRBENCH),
    ALPACA_EVAL: _drawn_from(_ALPACA_EVAL),
}
_EACH_RUN: Final = frozenset({EVEN, HALF_OPEN})
"""Kinds whose repeats do not resemble each other."""


By = Literal["runs", "scenarios"] | float


@dataclass(frozen=True)
class Tutor:
    """A kind of tutor with its failures, and a benchmark of it."""

    kind: str
    scenarios: int
    repeats: int
    failing: float
    """The share of runs that fail."""

    by: By
    """What fails at once; a number is the correlation of two runs of a scenario."""

    vector: Literal["overall", "verbosity", "exploratory", "interrogative"] = "overall"
    opening: float = 0.0
    """The share of scenarios in which exploratory is 1."""

    @property
    def truth(self) -> float:
        """The true mean of the vector."""
        verbosity, exploratory = _smooth_means(self.kind)
        means = {
            "verbosity": verbosity,
            "exploratory": exploratory * (1 - self.opening) + self.opening,
            "interrogative": 1 - self.failing,
        }
        return fmean(means.values()) if self.vector == OVERALL else means[self.vector]

    def draw(self, rng: random.Random) -> VectorScores[str]:
        """Draw the scores of each scenario, as the cells of a benchmark hold them."""
        found: VectorScores[str] = VectorScores()
        for each in self.rounds(rng):
            found.add(each)
        return found

    def rounds(self, rng: random.Random) -> Sequence[VectorScores[str]]:
        """Draw the same scores, each repeat of all scenarios by itself."""
        smooth = _KINDS[self.kind]
        found: list[VectorScores[str]] = [VectorScores() for _ in range(self.repeats)]
        for number in range(self.scenarios):
            own, chance = smooth(rng), self._chance(rng)
            opens = rng.random() < self.opening
            for each in found:
                sums = {name: Tally() for name in _VECTORS}
                is_own = self.kind not in _EACH_RUN and rng.random() < ALIKE
                verbosity, exploratory = own if is_own else smooth(rng)
                if opens:
                    exploratory = 1.0
                asks = float(rng.random() >= chance)
                scores = (verbosity, exploratory, asks)
                for name, score in zip(_VECTORS, (*scores, fmean(scores)), strict=True):
                    sums[name].add(millionths(score))
                each.merge(f"s{number:03}", "student", 1, sums)
        return found

    def _chance(self, rng: random.Random) -> float:
        """Return the chance that a run of a scenario fails."""
        if self.by == "runs":
            return self.failing
        if self.by == "scenarios":
            return float(rng.random() < self.failing)
        size = (1 - self.by) / self.by
        return rng.betavariate(self.failing * size, (1 - self.failing) * size)


_VECTORS: Final = ("verbosity", "exploratory", "interrogative", OVERALL)


@cache
def _smooth_means(kind: str) -> Smooth:
    rng = random.Random(1)
    answers = [_KINDS[kind](rng) for _ in range(_LARGE)]
    return fmean(each[0] for each in answers), fmean(each[1] for each in answers)


def tutors() -> tuple[Tutor, ...]:
    """Return every tutor of the table."""
    even = Tutor(EVEN, 15, 3, 0.01, "runs")
    opening = Tutor(HALF_OPEN, 15, 3, 0.0, "runs", opening=0.05)
    return (
        even,
        replace(even, failing=0.02),
        *(replace(even, failing=share, by="scenarios") for share in (0.05, 0.1, 0.15)),
        Tutor(EVEN, 6, 2, 0.05, "runs"),
        Tutor(EVEN, 40, 3, 0.05, "scenarios"),
        opening,
        replace(opening, vector="exploratory"),
        Tutor(EVEN, 15, 3, 0.1, 0.3, "interrogative"),
        Tutor(GOOD, 15, 3, 0.1, "scenarios"),
        Tutor(MRBENCH, 15, 3, 0.1, "scenarios"),
        Tutor(MRBENCH, 15, 3, 0.5, 0.3),
        Tutor(GOOD, 5, 3, 0.3, 0.3),
        Tutor(ALPACA_EVAL, 15, 3, 0.95, 0.3),
        Tutor(MEDIUM, 15, 3, 0.0, "runs", "verbosity"),
    )
