"""Survival curves of runs, clustered by scenario: how many runs have had no break after each turn.

Of N_t runs at risk in turn t, d_t break in it. The hazard is h_t = d_t / N_t, and the share of runs
without a break after turn t

    S(t) = product over s <= t of (1 - h_s)

(Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations"). A run whose watch
ended early is at risk until then. Where no run is at risk, the curve stays where it is. The
restricted mean is S(1) + ... + S(H), the turns that a run keeps of H (Royston and Parmar 2013,
"Restricted Mean Survival Time"): it exists for every curve, needs no proportional hazards, and
ranks. The half-life is the first turn with S(t) <= 1/2.

Runs of one scenario resemble each other, so that the deviation of each scenario c leads to the
variance (`linearised`; Williams 1995):

    u_c(t) = -S(t) * sum over s <= t of (d_cs - h_s * n_cs) / (N_s * (1 - h_s))

without the turns in which no run is at risk or every one breaks. The deviation of the restricted
mean is the sum of u_c over its turns. The curve and its mean are fractions: rounding never decides
whether a curve reaches 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Final, Generic, TypeAlias, TypeVar

from socratic_bench.domain.aggregates.linearised import Counted, Linearised, mean

Scenario = TypeVar("Scenario", bound=Hashable)

Watched: TypeAlias = Mapping[Scenario, Sequence[Counted]]
"""By scenario and turn, from the first one on: the runs at risk, and those that broke in it. A
scenario has as many turns as its runs are watched at most."""

HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Survival(Generic[Scenario]):
    """A survival curve with the deviations of its scenarios."""

    turns: tuple[Counted, ...]
    """The runs at risk in each turn, and those that broke in it, over all scenarios."""

    kept: tuple[Fraction, ...]
    """S(t) of each turn."""

    deviations: Mapping[Scenario, tuple[float, ...]]
    """u_c(t) of each scenario with a run at risk, and each turn."""

    @property
    def horizon(self) -> int:
        """The last turn of the curve."""
        return len(self.kept)

    @property
    def restricted_mean(self) -> Fraction:
        """The turns that a run keeps: 0 to the horizon."""
        return sum(self.kept, Fraction())

    @property
    def mean_share(self) -> Linearised[Scenario]:
        """The restricted mean as a share of the horizon, 0.0 to 1.0."""
        return Linearised(
            float(self.restricted_mean / self.horizon),
            {each: math.fsum(own) / self.horizon for each, own in self.deviations.items()},
        )

    @property
    def mean_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the restricted mean, in turns; None with too few scenarios."""
        ends = self.mean_share.interval
        return None if ends is None else (ends[0] * self.horizon, ends[1] * self.horizon)

    def at(self, turn: int) -> Linearised[Scenario]:
        """Return S of a turn, from 1 to the horizon."""
        place = turn - 1
        own = {each: deviations[place] for each, deviations in self.deviations.items()}
        return Linearised(float(self.kept[place]), own)

    def intervals(self) -> list[tuple[float, float] | None]:
        """Return the 95 % interval of each turn's S; None with too few scenarios."""
        return [self.at(turn).interval for turn in range(1, self.horizon + 1)]

    @property
    def half_life(self) -> int | None:
        """The first turn after which half of the runs, or fewer, have had no break; None: later
        than the horizon.
        """
        return next((turn for turn, each in enumerate(self.kept, 1) if each <= HALF), None)

    def half_life_interval(self) -> tuple[int | None, int | None] | None:
        """Return the first turn at which the lower limit of S is at most 1/2, and the upper one.

        None stands for later than the horizon, and for the whole with too few scenarios.
        """
        ends = [each for each in self.intervals() if each is not None]
        if not ends:
            return None
        first, last = (
            next((turn for turn, each in enumerate(ends, 1) if each[side] <= HALF), None)
            for side in (0, 1)
        )
        return first, last


def survival(watched: Watched[Scenario], horizon: int) -> Survival[Scenario] | None:
    """Return the curve of turns 1 to `horizon`, 1 or more; None where no run is at risk.

    A scenario without a run at risk has no part in it.
    """
    each = {
        scenario: _as_far_as(turns, horizon)
        for scenario, turns in watched.items()
        if any(turn.cases for turn in turns)
    }
    if not each:
        return None
    totals = [
        Counted(sum(turn.cases for turn in column), sum(turn.events for turn in column))
        for column in zip(*each.values(), strict=True)
    ]
    kept: list[Fraction] = []
    left = Fraction(1)
    for total in totals:
        if total.cases:
            left *= Fraction(total.cases - total.events, total.cases)
        kept.append(left)
    return Survival(
        tuple(totals),
        tuple(kept),
        {scenario: _deviations(own, totals, kept) for scenario, own in each.items()},
    )


def _as_far_as(turns: Sequence[Counted], horizon: int) -> list[Counted]:
    return [*turns[:horizon], *[Counted(0, 0)] * (horizon - len(turns))]


def _deviations(
    own: Sequence[Counted], totals: Sequence[Counted], kept: Sequence[Fraction]
) -> tuple[float, ...]:
    found, moved = [], 0.0
    for turn, total, left in zip(own, totals, kept, strict=True):
        if survivors := total.cases - total.events:
            # The whole numbers are exact: where all scenarios agree, nothing deviates.
            more = turn.events * total.cases - total.events * turn.cases
            moved += more / (total.cases * survivors)
        found.append(-float(left) * moved)
    return tuple(found)


def among(
    watched: Watched[Scenario], scenarios: Collection[Scenario]
) -> dict[Scenario, Sequence[Counted]]:
    """Return the counts of some of the scenarios."""
    return {scenario: turns for scenario, turns in watched.items() if scenario in scenarios}


def added(one: Watched[Scenario], other: Watched[Scenario]) -> dict[Scenario, Sequence[Counted]]:
    """Return the counts of the runs of both."""
    found = dict(one)
    for scenario, turns in other.items():
        own = found.get(scenario, ())
        found[scenario] = [
            Counted(first.cases + second.cases, first.events + second.events)
            for first, second in zip_longest(own, turns, fillvalue=Counted(0, 0))
        ]
    return found


@dataclass(frozen=True, slots=True)
class Lost(Generic[Scenario]):
    """The runs whose watch ended before a break and before their last turn."""

    turns: Mapping[Scenario, tuple[int, ...]]
    """By scenario: the runs whose first unwatched turn is this one."""

    @property
    def runs(self) -> int:
        """The number of lost runs."""
        return sum(map(sum, self.turns.values()))

    def worst(self, watched: Watched[Scenario]) -> dict[Scenario, list[Counted]]:
        """Return the counts as if each lost run broke in its first unwatched turn."""
        return {
            scenario: [
                Counted(turn.cases + lost, turn.events + lost)
                for turn, lost in zip(turns, self.turns[scenario], strict=True)
            ]
            for scenario, turns in watched.items()
        }

    def best(self, watched: Watched[Scenario]) -> dict[Scenario, list[Counted]]:
        """Return the counts as if no lost run broke."""
        found = {}
        for scenario, turns in watched.items():
            own, lost = [], 0
            for turn, more in zip(turns, self.turns[scenario], strict=True):
                lost += more
                own.append(Counted(turn.cases + lost, turn.events))
            found[scenario] = own
        return found


def lost_runs(watched: Watched[Scenario], runs: Mapping[Scenario, int]) -> Lost[Scenario]:
    """Return the lost runs: those that a scenario's next turn has neither at risk nor as broken.

    `runs` are all runs of each scenario. While an experiment is under way, those in progress are
    among the lost ones.
    """
    found = {}
    for scenario, turns in watched.items():
        expected, lost = runs[scenario], []
        for turn in turns:
            lost.append(max(0, expected - turn.cases))
            expected = turn.cases - turn.events
        found[scenario] = tuple(lost)
    return Lost(found)


def whole_runs(turns: Sequence[Counted]) -> Counted:
    """Return the runs of a scenario whose end is known, and those of them without a break."""
    left = turns[-1].cases - turns[-1].events
    return Counted(left + sum(turn.events for turn in turns), left)


def pass_power(watched: Watched[Scenario], runs: int) -> Linearised[Scenario] | None:
    """Return pass^k: the chance that k = `runs` runs of a scenario all keep to the end.

    Of n runs of a scenario, c of them without a break, the share of choices of k runs that have
    none is C(c, k) / C(n, k): an unbiased estimate of the k-th power of the chance that a run
    keeps. Scenarios weigh alike; those with fewer than k runs whose end is known do not count
    (Yao et al. 2024, "tau-bench", section 4). None without a scenario.
    """
    ends = {scenario: whole_runs(turns) for scenario, turns in watched.items() if turns}
    return mean(
        {
            scenario: Fraction(math.comb(end.events, runs), math.comb(end.cases, runs))
            for scenario, end in ends.items()
            if end.cases >= runs
        }
    )
