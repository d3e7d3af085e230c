"""How often the interval of turns kept covers the truth, over drawn runs under pressure.

    python -m tests.benchmarks.fidelity_coverage [DRAWS]

All figures come from the product's own functions. A `Pressed` tutor breaks in each turn with a
hazard that belongs to the scenario, drawn from a beta distribution: runs of one scenario break
alike, the more the larger `likeness` is. Other tutors keep to asking in all scenarios but a few, in
which every run breaks in the same turn. Lost runs end their watch in a turn of any number. It
prints, for each tutor, the coverage of turns kept and its interval's mean width, the lowest
coverage of the curve's turns, and the share of pairs of equal tutors that look different.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from socratic_bench.domain.aggregates.difference import FAMILY_ERROR
from socratic_bench.domain.aggregates.linearised import Counted, linearised_difference
from socratic_bench.domain.aggregates.survival import Survival, survival

DRAWS: Final = 4_000
LEAST: Final = 0.925
"""The least coverage of turns kept: 93 %, and room for the chance of the draws."""

MOST_FALSE: Final = 0.06
"""The largest share of equal tutors that may look different."""

HORIZON: Final = 11


@dataclass(frozen=True)
class Pressed:
    """A tutor under pressure, and the benchmark that asks it."""

    scenarios: int
    repeats: int
    hazard: float
    """The mean probability that a run breaks in a turn; 0: nobody breaks."""

    likeness: float = 0.1
    """How alike the runs of a scenario break, 0 to 1."""

    broken: float = 0.0
    """The share of scenarios in which every run breaks in turn 3, and in no other turn."""

    lost: float = 0.0
    """The probability that the watch of a run ends in a turn."""

    @property
    def truth(self) -> list[float]:
        """The share of runs without a break after each turn."""
        size = (1 - self.likeness) / self.likeness
        a, b = self.hazard * size, (1 - self.hazard) * size
        found, left = [], 1.0
        for turn in range(HORIZON):
            if self.hazard:
                left *= (b + turn) / (a + b + turn)
            found.append(left * (1 - self.broken * (turn >= 2)))
        return found

    def draw(self, rng: random.Random, hazards: Sequence[float] | None = None) -> Survival[int]:
        """Draw the runs of a benchmark, in scenarios of these hazards or of new ones."""
        hazards = self.hazards(rng) if hazards is None else hazards
        found = survival(
            {place: self._scenario(rng, each) for place, each in enumerate(hazards)}, HORIZON
        )
        assert found is not None
        return found

    def hazards(self, rng: random.Random) -> list[float]:
        """Draw the hazard of each scenario; 2 stands for a break in turn 3."""
        size = (1 - self.likeness) / self.likeness
        return [
            2.0
            if rng.random() < self.broken
            else self.hazard and rng.betavariate(self.hazard * size, (1 - self.hazard) * size)
            for _ in range(self.scenarios)
        ]

    def _scenario(self, rng: random.Random, hazard: float) -> list[Counted]:
        at_risk, broke = [0] * HORIZON, [0] * HORIZON
        for _ in range(self.repeats):
            for turn in range(HORIZON):
                if self.lost and rng.random() < self.lost:
                    break
                at_risk[turn] += 1
                if turn == 2 if hazard > 1 else rng.random() < hazard:
                    broke[turn] += 1
                    break
        return list(map(Counted, at_risk, broke))


def half_life(turns: int, scenarios: int = 24, repeats: int = 3, **more: float) -> Pressed:
    """Return a tutor whose hazard leads to a half-life of about so many turns."""
    return Pressed(scenarios, repeats, 1 - math.exp(math.log(0.5) / turns), **more)


def tutors() -> Iterator[Pressed]:
    """Yield the tutors that are drawn."""
    yield half_life(3)
    yield half_life(8, likeness=0.3)
    yield half_life(3, scenarios=15, likeness=0.3)
    yield half_life(5, lost=0.02)
    yield Pressed(24, 3, 0.002)
    yield Pressed(15, 3, 0.0, broken=0.05)
    yield Pressed(8, 2, 0.01)
    yield half_life(2, scenarios=5, likeness=0.3)
    yield Pressed(24, 3, 0.0)


@dataclass(frozen=True)
class Covered:
    """What the intervals of a tutor did."""

    coverage: float
    """Of turns kept."""

    width: float
    """In turns."""

    least_of_curve: float
    """The lowest coverage of a turn of the curve."""


def measure(tutor: Pressed, draws: int) -> Covered:
    """Draw `draws` benchmarks of a tutor, always the same ones, and count what covers the truth."""
    rng, truth = random.Random(repr(tutor)), tutor.truth
    curves = [tutor.draw(rng) for _ in range(draws)]
    kept = [each.mean_interval or (0.0, 0.0) for each in curves]
    of_turns = zip(*(each.intervals() for each in curves), strict=True)
    return Covered(
        coverage=_share(kept, sum(truth)),
        width=fmean(high - low for low, high in kept),
        least_of_curve=min(
            _share([ends or (0.0, 0.0) for ends in of_turn], left)
            for of_turn, left in zip(of_turns, truth, strict=True)
        ),
    )


def false_differences(tutor: Pressed, pairs: int, *, alike: bool) -> float:
    """Return the share of pairs of equal tutors that look different.

    They are asked in the same scenarios: these are hard for both `alike`, or for each in its own
    way.
    """
    rng = random.Random(repr(tutor))
    different = 0
    for _ in range(pairs):
        hazards = tutor.hazards(rng) if alike else None
        one, other = (tutor.draw(rng, hazards).mean_share for _ in range(2))
        if one.deviations.keys() == other.deviations.keys():
            different += linearised_difference(one, other).p_value <= FAMILY_ERROR
    return different / pairs


def _share(bounds: Sequence[tuple[float, float]], truth: float) -> float:
    return fmean(low - 1e-9 <= truth <= high + 1e-9 for low, high in bounds)


def main(draws: int = DRAWS) -> None:
    """Print the table. Raises SystemExit where a coverage is too low, or too many pairs differ."""
    failed = 0
    for tutor in tutors():
        found = measure(tutor, draws)
        false = max(false_differences(tutor, draws // 2, alike=alike) for alike in (False, True))
        failed += found.coverage < LEAST or false > MOST_FALSE
        print(
            f"{found.coverage:6.1%}, width {found.width:.2f} of {HORIZON} turns; curve at least "
            f"{found.least_of_curve:.1%}; {false:.1%} of equal pairs differ: {tutor}"
        )
    if failed:
        raise SystemExit(f"{failed} tutors miss {LEAST:.1%} coverage or {MOST_FALSE:.0%} false")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
