"""Figures that are no plain mean over runs, with the deviation of each cluster.

A smooth function of sums over clusters, such as a ratio or a survival curve, moves with each
cluster c by its linearised deviation u_c, and the deviations add up to 0. Its variance is

    variance = G / (G - 1) * sum_c u_c^2

(the delta method over clusters: Binder 1983, "On the Variances of Asymptotically Normal Estimators
from Complex Surveys"; Williams 1995, "Product-Limit Survival Functions with Correlated Survival
Times"). A mean over runs is the simplest of them, with the variance of `statistics`. The interval
is the one of `statistics`, and the difference of two figures the one of `difference`: such a figure
is its own part and has the jump 1, since the next scenario may end anywhere on its scale.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from socratic_bench.domain.aggregates.difference import (
    NO_DIFFERENCE,
    Difference,
    PartSpread,
    Spread,
    difference_of,
)
from socratic_bench.domain.aggregates.parts import Jump, floors
from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS, bounded_interval

Scenario = TypeVar("Scenario", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Linearised(Generic[Scenario]):
    """A figure on the scale from 0 to 1, with the deviation of each scenario."""

    value: float
    deviations: Mapping[Scenario, float]
    """u_c of each scenario: how far it moves the figure."""

    @property
    def variance(self) -> float:
        """The variance of the figure, of two scenarios or more."""
        return _variance(list(self.deviations.values()))

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, clustered by scenario; None with fewer than FEWEST_CLUSTERS scenarios."""
        groups = len(self.deviations)
        if groups < FEWEST_CLUSTERS:
            return None
        variance = self.variance
        least = floors(variance, 1.0, self.value, groups)
        return bounded_interval(self.value, variance, groups, least).ends


class Counted(NamedTuple):
    """How many of the cases of a scenario had an event."""

    cases: int
    events: int


def ratio(counts: Mapping[Scenario, Counted]) -> Linearised[Scenario] | None:
    """Return events by cases over all scenarios; None without a case.

    u_c = (events_c - ratio * cases_c) / cases. A scenario without a case does not count.
    """
    counted = {scenario: each for scenario, each in counts.items() if each.cases}
    cases = sum(each.cases for each in counted.values())
    if not cases:
        return None
    events = sum(each.events for each in counted.values())
    return Linearised(
        events / cases,
        {
            scenario: (each.events * cases - events * each.cases) / cases**2
            for scenario, each in counted.items()
        },
    )


def mean(values: Mapping[Scenario, Fraction]) -> Linearised[Scenario] | None:
    """Return the mean of one value a scenario, each of the same weight; None without a value."""
    if not values:
        return None
    count = len(values)
    centre = sum(values.values(), Fraction()) / count
    return Linearised(
        float(centre),
        {scenario: float((each - centre) / count) for scenario, each in values.items()},
    )


def linearised_difference(one: Linearised[Scenario], other: Linearised[Scenario]) -> Difference:
    """Return how much more `one` is than `other`, paired by scenario.

    Both are figures of the same scenarios. Raises ValueError for others.
    """
    if one.deviations.keys() != other.deviations.keys():
        raise ValueError("the figures are of different scenarios: fold both over the common ones")
    count, centre = len(one.deviations), one.value - other.value
    if not count:
        return NO_DIFFERENCE
    if count < FEWEST_CLUSTERS:
        return Difference(count, centre, None, 1.0)
    variance = _variance(
        [deviation - other.deviations[each] for each, deviation in one.deviations.items()]
    )
    first, second = Jump(one.value, 1.0), Jump(other.value, 1.0)
    part = PartSpread(
        weight=1.0,
        scenarios=count,
        variance=variance,
        less=max(first.fall, second.rise),
        more=max(first.rise, second.fall),
    )
    return difference_of(centre, Spread(count, variance, (part,)))


def _variance(deviations: list[float]) -> float:
    groups = len(deviations)
    return groups / (groups - 1) * math.fsum(each**2 for each in deviations)
