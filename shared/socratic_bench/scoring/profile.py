"""What a scorer profile is: a versioned recipe that makes a score.

A profile names its vectors, measures them, weighs them into `overall`, and explains itself. Nothing
outside a profile knows how many vectors there are or what they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, cast, runtime_checkable

from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.statuses import Status

CANONICAL = "socratic-v1"
"""The name of the profile used where none is named."""

OVERALL = "overall"
"""The weighted mean of a profile's vectors; no vector may take this name."""


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """A word for the scores from `least` up to the next range."""

    least: float
    word: str


@dataclass(frozen=True, slots=True)
class VectorDescription:
    """A vector in words, for people who read its figures."""

    name: str
    meaning: str
    """What 0.0 and 1.0 stand for, in a sentence."""

    formula: str
    examples: tuple[tuple[str, float | None], ...]
    """Responses that show it: (text, visible tokens or None). The scorer computes their scores."""

    ranges: tuple[ScoreRange, ...] = ()
    """Words for its scores, the highest range first; none if the profile has no words."""

    def word_for(self, score: float) -> str | None:
        """The word for a score of this vector, or None if no range holds it."""
        return next((each.word for each in self.ranges if score >= each.least), None)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each vector counts in `overall`: equally, but for the dimensions named here."""

    by_dimension: Mapping[str, Mapping[str, float]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def of(self, dimension: str | None, vectors: tuple[str, ...]) -> tuple[float, ...] | None:
        """One weight per vector, in the order of `vectors`; None if all count equally."""
        weights = self.by_dimension.get(dimension) if dimension else None
        if weights is None:
            return None
        return tuple(float(weights.get(vector, 0.0)) for vector in vectors)


@runtime_checkable
class Profile(Protocol):
    """A versioned recipe. It is pure: the same exchange gives the same figures, for ever."""

    @property
    def name(self) -> str:
        """The name and version, such as `socratic-v1`."""
        ...

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vectors' names, in the order in which `measure` gives them."""
        ...

    @property
    def weights(self) -> Weights:
        """How the vectors are weighed into `overall`."""
        ...

    def describe(self) -> tuple[VectorDescription, ...]:
        """The vectors in words, in order."""
        ...

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Whether a response that ended like this has a score at all."""
        ...

    def measure(self, exchange: Exchange) -> tuple[float | None, ...]:
        """The vectors of one response, each 0.0 to 1.0, unrounded; None: it does not apply here.

        A vector that does not apply enters neither its own mean nor `overall`; it is counted.
        """
        ...

    def evidence(self, exchange: Exchange) -> Evidence:
        """Why `measure` gives what it gives."""
        ...

    def legend(self) -> tuple[SpanKind, ...]:
        """What the kinds of spans in `evidence` mean, and how a page marks them."""
        ...


def overall(values: tuple[float | None, ...], weights: tuple[float, ...] | None) -> float | None:
    """The mean of the vectors that apply, weighted unless `weights` is None.

    None if no vector applies, or none that has a weight.
    """
    if None in values:
        return _overall_of_some(values, weights or (1.0,) * len(values))
    measured = cast("tuple[float, ...]", values)
    if weights is None:
        return sum(measured) / len(measured)
    total = sum(weights)
    mean = sum(value * weight for value, weight in zip(measured, weights, strict=True)) / total
    return min(mean, 1.0)  # rounding may leave the scale by its last digit


def _overall_of_some(values: tuple[float | None, ...], weights: tuple[float, ...]) -> float | None:
    weighed = [
        (value, weight)
        for value, weight in zip(values, weights, strict=True)
        if value is not None and weight > 0
    ]
    if not weighed:
        return None
    total = sum(weight for _, weight in weighed)
    return min(sum(value * weight for value, weight in weighed) / total, 1.0)
