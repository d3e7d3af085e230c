"""How far an interval reaches at least: room for a failure that no scenario happened to show.

Scenarios that agree say nothing of those that nobody asked. A vector that says yes or no, or whose
scenarios all agree, may jump: a tutor whose answers all end with a question may not ask in one of
thirty scenarios. A vector that changes by degrees shows in any few scenarios how far it strays. So
the variance below a mean is at least that after IMAGINED more scenarios in which the vector fell to
0, and the one above at least that after as many at 1, for the jump j of the vector (kin: the "plus
four" of Agresti and Coull 1998, "Approximate Is Better than Exact for Interval Estimation of
Binomial Proportions", one side at a time):

    below = kappa * V + beta * j * m^2          kappa = G (G - 1) / ((G + 3) (G + 2))
    above = kappa * V + beta * j * (1 - m)^2    beta  = 3 G / ((G + 3)^2 (G + 2))

with G scenarios, mean m and clustered variance V. The jump is the larger of

    share = (sum of score^2 / n - p^2) / (p * (1 - p))    of n responses of mean p
    ties^2 = ((k - 1) / (G - 1))^2                        with k scenarios of the same mean

share is the part that the variance of the responses has of the most that it can be: 1 for yes or
no. ties is 1 where all scenarios agree.

`overall` falls with its vectors, by the weight of each: it has the floors of its largest part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Tally

IMAGINED: Final = 3
"""The scenarios that an interval leaves room for, beyond those that were asked."""


class Jump(NamedTuple):
    """A vector's level and jump, over the responses to some scenarios."""

    level: float
    """The mean of the responses, 0.0 to 1.0."""

    jump: float
    """From 0, for a vector that changes by small degrees, to 1: it may fall all the way."""

    @property
    def fall(self) -> float:
        """The square of the way to 0, for the jump."""
        return self.jump * self.level**2

    @property
    def rise(self) -> float:
        """The square of the way to 1, for the jump."""
        return self.jump * (1 - self.level) ** 2


@dataclass(frozen=True, slots=True)
class Floors:
    """The least variance of a mean towards each end of the scale."""

    below: float
    above: float

    def times(self, weight: float) -> Floors:
        """Return the floors of a figure that moves by `weight` where this vector moves by 1."""
        return Floors(weight**2 * self.below, weight**2 * self.above)


def kept_share(groups: float) -> float:
    """Return kappa: what IMAGINED more scenarios leave of the variance of the mean of `groups`."""
    return groups * (groups - 1) / ((groups + IMAGINED) * (groups + IMAGINED - 1))


def imagined_share(groups: float) -> float:
    """Return beta: what IMAGINED more scenarios add to it, for each squared way to the end."""
    return IMAGINED * groups / ((groups + IMAGINED) ** 2 * (groups + IMAGINED - 1))


def floors(variance: float, jump: float, mean: float, groups: int) -> Floors:
    """Return the floors of a vector with this clustered variance of its mean over `groups`.

    Of one scenario the variance is unknown, and 0 here. A figure that may end anywhere at once,
    such as a share of conversations, has the jump 1.
    """
    spread, imagined = kept_share(groups) * variance, imagined_share(groups) * jump
    return Floors(spread + imagined * mean**2, spread + imagined * (1 - mean) ** 2)


def largest(parts: Iterable[Floors]) -> Floors:
    """Return the floors of a figure with these parts, of which there is one at least."""
    every = list(parts)
    return Floors(max(each.below for each in every), max(each.above for each in every))


def jump_of(responses: Tally, means: Sequence[float]) -> Jump:
    """Return the jump of a vector, from the sums of its responses and the mean of each scenario.

    Equal fractions make equal means: 2 of 2 ties with 3 of 3. Both have one element at least.
    """
    n, total = responses.n, responses.total
    # In whole numbers: all sides of this are n^2 times those of the formula.
    most = total * (n * MILLIONTHS - total)
    share = (n * responses.squares - total**2) / most if most else 1.0
    alike = max(Counter(means).values())
    ties = (alike - 1) / (len(means) - 1) if len(means) > 1 else 1.0
    return Jump(total / n / MILLIONTHS, max(share, ties**2))
