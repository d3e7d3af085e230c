"""The parts of a figure: the vectors with which it may fall, and how far.

`overall` of a linear profile has each of its vectors, by the weight in the scenario: the weight
times the responses that the vector applies to, divided by the sum of that over all vectors. Another
`overall` is a part of its own, beside the vectors for which its profile declares a share. A vector
is its own part.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Generic, NamedTuple, TypeVar

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.aggregates.floors import Jump, jump_of
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL

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

    def weight(self, part: str, scenarios: Collection[Scenario]) -> float:
        """Return the mean weight of a part over some scenarios of the figure."""
        weights = self.parts[part].weights
        if len(scenarios) == len(weights):
            return fmean(weights)
        own = zip(self.own.scenarios, weights, strict=True)
        return fmean(weight for scenario, weight in own if scenario in scenarios)
