"""The difference of two models, paired by scenario, and what chance may make of it.

Each common scenario gives one difference of means, of the same weight; d is their mean, and V its
variance. As an interval of a mean does, that of a difference leaves room for a failure that no
common scenario showed (`parts`): the first model may fall, or the second rise, with each part k of
the figure. With the part's variance V_k of its own differences, its weight w_k, and the levels and
jumps of both models over the common scenarios,

    below^2 = max(V, w_k^2 * (kappa * V_k + beta * max(j_A * p_A^2, j_B * (1 - p_B)^2)))
    above^2 = max(V, w_k^2 * (kappa * V_k + beta * max(j_A * (1 - p_A)^2, j_B * p_B^2)))

over all parts. The interval goes from d - t * below to d + t * above; the test has the error on the
side of 0. `parts` has kappa and beta.

That a test finds no difference does not show that there is none. Two one-sided tests show it: the
difference is more than -margin, and less than margin (Schuirmann 1987, "A Comparison of the Two
One-Sided Tests Procedure and the Power Approach"). Both hold at 5 % where the 90 % interval lies
within the margin. What matters is the reader's to say, before the tests.

Two models answer the same scenarios, so that their difference is a paired one: what is hard for
both cancels out (Miller 2024, "Adding Error Bars to Evals", section 4.2). `difference` has the
difference and its errors, and Student's t tests it. Every pair of a table is tested; Holm's
correction (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure") holds the
probability of a single false difference in the whole table to 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final, TypeVar

from socratic_bench.domain.aggregates.parts import (
    FigureSums,
    ScenarioSums,
    imagined_share,
    kept_share,
)
from socratic_bench.domain.aggregates.statistics import (
    CONFIDENCE,
    FEWEST_CLUSTERS,
    student_t_distribution,
    student_t_quantile,
)

Scenario = TypeVar("Scenario", bound=Hashable)

FAMILY_ERROR: Final = 0.05
"""The greatest probability of one or more false differences in a table."""

POWER: Final = 0.8
"""The probability with which a test of enough scenarios shows a real difference."""

NO_SPREAD: Final = 1e-9
"""An error below this is that of rounding."""

MOST_SCENARIOS: Final = 10**7
"""More scenarios than these, nobody can ask: what needs more is unknown."""


@dataclass(frozen=True, slots=True)
class Errors:
    """The standard errors of a difference: towards less, and towards more."""

    below: float
    above: float

    def towards_zero(self, centre: float) -> float:
        """Return the error on the side of 0."""
        return self.below if centre > 0 else self.above


@dataclass(frozen=True, slots=True)
class PartSpread:
    """What a part of a figure may do to a difference."""

    weight: float
    scenarios: int
    variance: float
    """Of the mean of the part's own differences; 0 for a single scenario."""

    less: float
    """The larger of the first model's squared way down and the second one's way up, each for its
    jump."""

    more: float
    """The larger of the first model's squared way up and the second one's way down."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a difference, and that of its parts."""

    scenarios: int
    variance: float
    """Of the mean of the scenarios' differences."""

    parts: tuple[PartSpread, ...]

    def errors(self, scenarios: float | None = None, *, is_exact: bool = False) -> Errors:
        """Return the errors, or those that so many scenarios like these would have.

        `is_exact` takes the runs of each scenario for so many that no variance is left.
        """
        ratio = 1.0 if scenarios is None else scenarios / self.scenarios
        known = 0.0 if is_exact else 1.0 / ratio
        below = above = known * self.variance
        for part in self.parts:
            groups, weight = ratio * part.scenarios, part.weight**2
            spread = kept_share(groups) * known * part.variance
            imagined = imagined_share(groups)
            below = max(below, weight * (spread + imagined * part.less))
            above = max(above, weight * (spread + imagined * part.more))
        return Errors(math.sqrt(below), math.sqrt(above))


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more one model scores than another, over the scenarios that both answered."""

    scenarios: int
    mean: float | None
    """-1.0 to 1.0, each scenario of the same weight; None without a common scenario."""

    interval: tuple[float, float] | None
    """95 %; None with fewer than FEWEST_CLUSTERS scenarios."""

    p_value: float
    """Two-sided and uncorrected; 1 with fewer than FEWEST_CLUSTERS scenarios."""

    spread: Spread | None = None
    """None with fewer than FEWEST_CLUSTERS scenarios."""

    @property
    def errors(self) -> Errors | None:
        """The standard errors of the mean; None with fewer than FEWEST_CLUSTERS scenarios."""
        return None if self.spread is None else self.spread.errors()

    @property
    def is_real(self) -> bool:
        """Whether chance alone would seldom (5 %) make a difference of this size."""
        return self.p_value <= FAMILY_ERROR and bool(self.mean)

    def times(self, unit: float) -> Difference:
        """Return the difference on another scale, which is `unit` times as long, without spread."""
        ends = self.interval
        return replace(
            self,
            mean=None if self.mean is None else self.mean * unit,
            interval=None if ends is None else (ends[0] * unit, ends[1] * unit),
            spread=None,
        )


NO_DIFFERENCE: Final = Difference(0, None, None, 1.0)
"""That of two models without a common scenario."""


def paired_difference(one: FigureSums[Scenario], other: FigureSums[Scenario]) -> Difference:
    """Return how much more `one` scores than `other` in the scenarios of both."""
    first, second = _common(one.own, other.own)
    count = len(first.scenarios)
    if count == 0:
        return NO_DIFFERENCE
    each = [own - others for own, others in zip(first.means, second.means, strict=True)]
    centre = math.fsum(each) / count
    if count < FEWEST_CLUSTERS:
        return Difference(count, centre, None, 1.0)
    spread = Spread(count, _variance(each), tuple(_part_spreads(one, other, first.scenarios)))
    return difference_of(centre, spread)


def difference_of(centre: float, spread: Spread) -> Difference:
    """Return a difference with this mean and spread, of FEWEST_CLUSTERS scenarios or more."""
    count, errors = spread.scenarios, spread.errors()
    reach = student_t_quantile((1 + CONFIDENCE) / 2, count - 1)
    interval = (
        max(-1.0, centre - reach * errors.below),
        min(1.0, centre + reach * errors.above),
    )
    p_value = _p_value(centre, errors.towards_zero(centre), count)
    return Difference(count, centre, interval, p_value, spread)


def scenarios_to_tell(difference: Difference) -> int | None:
    """Return how many scenarios like these would show a difference of this size; None if unknown.

    The least n for which the critical value and the chance of a miss fit into the difference:
    t(0.975) * error(n) + z(POWER) * sqrt(variance(n)) <= |mean|, and no fewer than FEWEST_CLUSTERS.
    """
    spread, mean = difference.spread, difference.mean
    if not mean or spread is None or spread.errors().towards_zero(mean) < NO_SPREAD:
        return None

    def is_told(count: int) -> bool:
        error = spread.errors(count).towards_zero(mean)
        return needed_difference(spread, count, (1 + CONFIDENCE) / 2, error, POWER) <= abs(mean)

    return least_scenarios(is_told)


def needed_difference(
    spread: Spread, count: int, confidence: float, error: float, power: float
) -> float:
    """Return the difference that a test of `count` scenarios shows with this power."""
    missed = math.sqrt(spread.variance * spread.scenarios / count)
    critical = student_t_quantile(confidence, count - 1) * error
    return critical + NormalDist().inv_cdf(power) * missed


def least_scenarios(suffices: Callable[[int], bool]) -> int | None:
    """Return the least number of scenarios, FEWEST_CLUSTERS or more, that suffices.

    More suffice where fewer do. None where MOST_SCENARIOS do not.
    """
    low, high = FEWEST_CLUSTERS - 1, FEWEST_CLUSTERS
    while not suffices(high):
        if high >= MOST_SCENARIOS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _part_spreads(
    one: FigureSums[Scenario], other: FigureSums[Scenario], scenarios: Sequence[Scenario]
) -> list[PartSpread]:
    """Return the spread of each part that both models have; that of the figure where none is."""
    found, asked = [], frozenset(scenarios)
    for name, part in one.parts.items():
        if name in other.parts:
            first, second = _common(part.sums, other.parts[name].sums)
            if first.scenarios:
                weight = (one.weight(name, asked) + other.weight(name, asked)) / 2
                found.append(_part_spread(weight, first, second))
    return found or [_part_spread(1.0, *_common(one.own, other.own))]


def _part_spread(weight: float, first: ScenarioSums[Any], second: ScenarioSums[Any]) -> PartSpread:
    each = [own - others for own, others in zip(first.means, second.means, strict=True)]
    return PartSpread(
        weight=weight,
        scenarios=len(each),
        variance=_variance(each) if len(each) > 1 else 0.0,
        less=max(first.jump.fall, second.jump.rise),
        more=max(first.jump.rise, second.jump.fall),
    )


def _common(
    one: ScenarioSums[Scenario], other: ScenarioSums[Scenario]
) -> tuple[ScenarioSums[Scenario], ScenarioSums[Scenario]]:
    """Return the sums of both over their common scenarios, in the same order."""
    if one.scenarios == other.scenarios:
        return one, other
    common = set(one.scenarios) & set(other.scenarios)
    return one.among(common), other.among(common)


def _variance(values: Sequence[float]) -> float:
    """Return the variance of the mean of two or more values."""
    count = len(values)
    centre = math.fsum(values) / count
    return math.fsum((value - centre) ** 2 for value in values) / (count - 1) / count


def _p_value(centre: float, error: float, count: int) -> float:
    if abs(centre) < NO_SPREAD:
        return 1.0
    if error < NO_SPREAD:
        # t has no spread to go by: what remains is the sign test of equal signs.
        return float(2.0 ** (1 - count))
    return 2.0 * (1.0 - student_t_distribution(abs(centre) / error, count - 1))


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


def rank_intervals(models: Sequence[FigureSums[Any]]) -> list[tuple[int, int]]:
    """Return the best and the worst rank that each model may have; `models` come best first."""
    pairs = combinations(models, 2)
    return shared_ranks(len(models), [paired_difference(one, other) for one, other in pairs])


def shared_ranks(
    models: int, differences: Sequence[Difference], settled: Sequence[bool] | None = None
) -> list[tuple[int, int]]:
    """Return the best and the worst rank that each of so many models may have.

    `differences` are those of each pair, in the order of `combinations`. A model ranks behind those
    that score really more and before those that score really less. Models whose difference may be
    chance share ranks, and so do those of a pair that is not `settled` for another reason.
    """
    better = [0] * models
    worse = [0] * models
    adjusted = holm([each.p_value for each in differences])
    told = settled or [True] * len(differences)
    pairs = combinations(range(models), 2)
    for (one, other), difference, p_value, tells in zip(
        pairs, differences, adjusted, told, strict=True
    ):
        if tells and p_value <= FAMILY_ERROR and difference.mean:
            first, second = (one, other) if difference.mean > 0 else (other, one)
            better[second] += 1
            worse[first] += 1
    return [
        (min(rank, 1 + better[rank - 1]), max(rank, models - worse[rank - 1]))
        for rank in range(1, models + 1)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values corrected by Holm's method for their number, in the given order."""
    adjusted = [1.0] * len(p_values)
    least = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - step)))
        adjusted[place] = least
    return adjusted
