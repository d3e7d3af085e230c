"""Equivalence: whether a difference is too small to matter.

That a test finds no difference does not show that there is none. Two one-sided tests show it: the
difference is more than -margin, and less than margin (Schuirmann 1987, "A Comparison of the Two
One-Sided Tests Procedure and the Power Approach"). Both hold at 5 % where the 90 % interval lies
within the margin. What matters is the reader's to say, before the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from socratic_bench.domain.aggregates.difference import (
    FAMILY_ERROR,
    NO_SPREAD,
    POWER,
    Difference,
    least_scenarios,
    needed_difference,
)
from socratic_bench.domain.aggregates.statistics import student_t_distribution, student_t_quantile

MARGIN: Final = 0.05
"""The difference of scores that is too small to matter, unless the reader says otherwise."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether a difference lies within a margin."""

    margin: float
    interval: tuple[float, float] | None
    """90 %; None with fewer than FEWEST_CLUSTERS scenarios."""

    p_value: float
    """Of the larger of the two one-sided tests; 1 with fewer than FEWEST_CLUSTERS scenarios."""

    @property
    def is_shown(self) -> bool:
        """Whether a difference as large as the margin would seldom (5 %) look as small as this."""
        return self.p_value <= FAMILY_ERROR


def equivalence(difference: Difference, margin: float) -> Equivalence:
    """Test whether a paired difference is less than `margin` either way."""
    centre, errors, degrees = difference.mean, difference.errors, difference.scenarios - 1
    if centre is None or errors is None:
        return Equivalence(margin, None, 1.0)
    reach = student_t_quantile(1 - FAMILY_ERROR, degrees)
    interval = (
        max(-1.0, centre - reach * errors.below),
        min(1.0, centre + reach * errors.above),
    )
    # Each test has the error on the side of its margin, so that it agrees with the interval.
    chances = (
        _chance(margin - centre, errors.above, difference.scenarios),
        _chance(margin + centre, errors.below, difference.scenarios),
    )
    return Equivalence(margin, interval, max(chances))


def _chance(room: float, error: float, scenarios: int) -> float:
    """Return the p value of the one-sided test of a difference with so much room to a margin."""
    if error < NO_SPREAD:
        # t has no spread to go by: what remains is the sign test of equal signs.
        return 2.0 ** (-scenarios) if room > 0 else 1.0
    chance = 1.0 - student_t_distribution(abs(room) / error, scenarios - 1)
    return chance if room > 0 else 1.0 - chance


def scenarios_to_equate(difference: Difference, margin: float) -> int | None:
    """Return how many scenarios like these would show that models without a difference have none
    larger than `margin`; None if unknown.

    The least n for which t(0.95) * the larger error(n) + z((1 + POWER) / 2) * sqrt(variance(n)) <=
    margin, and no fewer than FEWEST_CLUSTERS.
    """
    spread = difference.spread
    if spread is None:
        return None

    def is_shown(count: int) -> bool:
        errors = spread.errors(count)
        larger = max(errors.below, errors.above)
        needed = needed_difference(spread, count, 1 - FAMILY_ERROR, larger, (1 + POWER) / 2)
        return needed <= margin

    return least_scenarios(is_shown)
