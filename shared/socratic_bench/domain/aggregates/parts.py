"""The parts of a figure: the vectors with which it may fall, and how far.

`overall` of a linear profile has each of its vectors, by the weight in the scenario: the weight
times the responses that the vector applies to, divided by the sum of that over all vectors. Another
`overall` is a part of its own, beside the vectors for which its profile declares a share. A vector
is its own part.

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

from array import array
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Generic, NamedTuple, TypeVar

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Tally
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL

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


Scenario = TypeVar("Scenario", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Part(Generic[Scenario]):
    """A vector with which a figure may fall."""

    name: str
    weights: Mapping[Scenario, float]
    """How far the figure falls in each of its scenarios where the vector falls from 1 to 0."""

    scores: Mapping[Scenario, RunScores]


def parts_of(
    scores: VectorScores[Scenario], figure: str, composition: Composition
) -> Iterator[Part[Scenario]]:
    """Yield the parts of `overall`, or of a vector; none where it has no score."""
    own = scores.of(figure)
    if not own:
        return
    vectors = tuple(name for name in scores.vectors if name != OVERALL)
    if figure == OVERALL and composition.weights is not None:
        weighed = list(_weighed(scores, composition))
        yield from weighed
        if weighed:
            return
    yield Part(figure, dict.fromkeys(own, 1.0), own)
    for vector, share in composition.shares_of(figure, vectors).items():
        if share and vector != figure and (of_vector := scores.of(vector)):
            yield Part(vector, dict.fromkeys(own, share), of_vector)


def _weighed(scores: VectorScores[Scenario], composition: Composition) -> Iterator[Part[Scenario]]:
    own, vectors = scores.of(OVERALL), composition.moving or ()
    weights: dict[str, dict[Scenario, float]] = {vector: {} for vector in vectors}
    measured, equal = [scores.of(vector) for vector in vectors], (1.0,) * len(vectors)
    for scenario in own:
        given = composition.weights and composition.weights.of(scores.dimensions[scenario], vectors)
        counts = [
            weight * found.scores if (found := of_vector.get(scenario)) else 0.0
            for of_vector, weight in zip(measured, given or equal, strict=True)
        ]
        total = sum(counts)
        for vector, count in zip(vectors, counts, strict=True):
            weights[vector][scenario] = count / total if total else 0.0
    for vector, by_scenario in weights.items():
        if any(by_scenario.values()):
            yield Part(vector, by_scenario, scores.of(vector))


@dataclass(frozen=True, slots=True)
class ScenarioSums(Generic[Scenario]):
    """The scores of a vector by scenario, so small that those of many models can be kept."""

    scenarios: tuple[Scenario, ...]
    """Those with a score, always in the same order."""

    means: array[float]
    """The mean of each scenario, a run counting once."""

    counts: array[int]
    """Of the responses to each scenario: n, their sum and the sum of their squares."""

    jump: Jump
    """Over all scenarios."""

    @classmethod
    def of(cls, scores: Mapping[Scenario, RunScores]) -> ScenarioSums[Scenario]:
        """Return the sums of the scenarios that have a score."""
        means: dict[Scenario, float] = {}
        counts: dict[Scenario, Tally] = {}
        for scenario in sorted(scores, key=str):
            mean = scores[scenario].mean
            if mean is not None:
                means[scenario], counts[scenario] = mean, scores[scenario].responses()
        return cls._made(means, counts)

    def among(self, scenarios: Collection[Scenario]) -> ScenarioSums[Scenario]:
        """Return the sums of some of the scenarios."""
        places = [place for place, each in enumerate(self.scenarios) if each in scenarios]
        return self._made(
            {self.scenarios[place]: self.means[place] for place in places},
            {
                self.scenarios[place]: Tally(*self.counts[3 * place : 3 * place + 3])
                for place in places
            },
        )

    @classmethod
    def mean_of(cls, models: Sequence[ScenarioSums[Scenario]]) -> ScenarioSums[Scenario]:
        """Return the sums of the mean of several models, each of the same weight in a scenario."""
        means: dict[Scenario, list[float]] = {}
        counts: dict[Scenario, Tally] = {}
        for each in models:
            for place, scenario in enumerate(each.scenarios):
                means.setdefault(scenario, []).append(each.means[place])
                tally = Tally(*each.counts[3 * place : 3 * place + 3])
                counts.setdefault(scenario, Tally()).merge(tally)
        ordered = sorted(means, key=str)
        return cls._made(
            {each: fmean(means[each]) for each in ordered}, {each: counts[each] for each in ordered}
        )

    @classmethod
    def _made(
        cls, means: Mapping[Scenario, float], counts: Mapping[Scenario, Tally]
    ) -> ScenarioSums[Scenario]:
        every, flat = Tally(), array("q")
        for tally in counts.values():
            every.merge(tally)
            flat.extend((tally.n, tally.total, tally.squares))
        jump = jump_of(every, tuple(means.values())) if means else Jump(0.0, 0.0)
        return cls(tuple(means), array("d", means.values()), flat, jump)


class PartSums(NamedTuple):
    """A part, so small that many can be kept."""

    weights: array[float]
    """In each scenario of the figure, in its order."""

    sums: ScenarioSums[Any]


@dataclass(frozen=True, slots=True)
class FigureSums(Generic[Scenario]):
    """What a difference needs to know of a figure of one model."""

    own: ScenarioSums[Scenario]
    parts: Mapping[str, PartSums]

    @classmethod
    def of(
        cls, scores: VectorScores[Scenario], figure: str, composition: Composition
    ) -> FigureSums[Scenario]:
        """Return the sums of a figure and of its parts."""
        own = ScenarioSums.of(scores.of(figure))
        return cls(
            own,
            {
                part.name: PartSums(
                    array("d", (part.weights[each] for each in own.scenarios)),
                    own if part.scores is scores.of(figure) else ScenarioSums.of(part.scores),
                )
                for part in parts_of(scores, figure, composition)
            },
        )

    @classmethod
    def mean_of(
        cls, models: Sequence[FigureSums[Scenario]], scenarios: Sequence[Collection[Scenario]]
    ) -> FigureSums[Scenario]:
        """Return the sums of the mean of several models, each of the same weight in a scenario.

        `scenarios` are those of each model to count, of which it has each.
        """
        asked = [
            (model, frozenset(own)) for model, own in zip(models, scenarios, strict=True) if own
        ]
        own = ScenarioSums.mean_of([model.own.among(each) for model, each in asked])
        names = dict.fromkeys(name for model, _ in asked for name in model.parts)
        parts = {}
        for name in names:
            having = [(model, each) for model, each in asked if name in model.parts]
            weights: dict[Scenario, list[float]] = {}
            for model, each in having:
                by_scenario = zip(model.own.scenarios, model.parts[name].weights, strict=True)
                for scenario, weight in by_scenario:
                    if scenario in each:
                        weights.setdefault(scenario, []).append(weight)
            parts[name] = PartSums(
                array("d", (fmean(weights.get(each, (0.0,))) for each in own.scenarios)),
                ScenarioSums.mean_of(
                    [model.parts[name].sums.among(each) for model, each in having]
                ),
            )
        return cls(own, parts)

    def of_part(self, part: str) -> FigureSums[Any]:
        """Return a part as a figure of its own, which is its only part."""
        sums = self.parts[part].sums
        alone = PartSums(array("d", [1.0] * len(sums.scenarios)), sums)
        return FigureSums(sums, {part: alone})

    def weight(self, part: str, scenarios: Collection[Scenario]) -> float:
        """Return the mean weight of a part over some scenarios of the figure."""
        weights = self.parts[part].weights
        if len(scenarios) == len(weights):
            return fmean(weights)
        own = zip(self.own.scenarios, weights, strict=True)
        return fmean(weight for scenario, weight in own if scenario in scenarios)
