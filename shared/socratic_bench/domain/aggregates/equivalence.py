"""Equivalence: whether a difference is too small to matter.

That a test finds no difference does not show that there is none. Two one-sided tests show it: the
difference is more than -margin, and less than margin (Schuirmann 1987, "A Comparison of the Two
One-Sided Tests Procedure and the Power Approach"). Both hold at 5 % where the 90 % interval lies
within the margin. What matters is the reader's to say, before the tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from socratic_bench.domain.aggregates.ranking import FAMILY_ERROR, NO_SPREAD, POWER, Difference
from socratic_bench.domain.aggregates.statistics import (
    FEWEST_CLUSTERS,
    student_t_distribution,
    student_t_quantile,
)

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
    centre, error, degrees = difference.mean, difference.error, difference.scenarios - 1
    if centre is None or error is None:
        return Equivalence(margin, None, 1.0)
    reach = student_t_quantile(1 - FAMILY_ERROR, degrees) * error
    interval = max(-1.0, centre - reach), min(1.0, centre + reach)
    room = margin - abs(centre)
    if error < NO_SPREAD:
        # t has no spread to go by: what remains is the sign test of equal signs.
        return Equivalence(margin, interval, 2.0 ** (-difference.scenarios) if room > 0 else 1.0)
    chance = 1.0 - student_t_distribution(abs(room) / error, degrees)
    return Equivalence(margin, interval, chance if room > 0 else 1.0 - chance)


def scenarios_to_equate(difference: Difference, margin: float) -> int | None:
    """Return how many scenarios like these would show that models without a difference have none
    larger than `margin`; None if unknown.

    n * ((z(0.95) + z((1 + POWER) / 2)) * error / margin)^2 (Chow, Shao and Wang 2003, "Sample Size
    Calculations in Clinical Research", section 3.2), and no fewer than FEWEST_CLUSTERS.
    """
    if difference.error is None:
        return None
    reach = NormalDist().inv_cdf(1 - FAMILY_ERROR) + NormalDist().inv_cdf((1 + POWER) / 2)
    needed = difference.scenarios * (reach * difference.error / margin) ** 2
    return max(FEWEST_CLUSTERS, math.ceil(needed))
