"""The scorer profile: a versioned recipe that makes a score.

A profile names its vectors, measures them, weighs them into `overall`, and explains its scores.
Code outside a profile assumes neither number nor names of vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, cast, runtime_checkable

from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status

CANONICAL = "socratic-v1"
"""The default profile's name."""

SAME_RULER = "socratic-v1-same-ruler"
"""The default profile with the length of all models' answers by one ruler."""

MOST_VECTORS: Final = 1000
"""Vectors of a profile, at most; so many counts, too."""

MOST_COUNT: Final = 10**12
"""The highest count of one response."""

OVERALL = "overall"
"""The weighted mean of a profile's vectors; no vector may take this name."""


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """A word for scores from `least` up to the next range."""

    least: float
    word: str


@dataclass(frozen=True, slots=True)
class VectorDescription:
    """A vector in words, for readers of its figures."""

    name: str
    meaning: str
    """The meaning of 0.0 and 1.0, in a sentence."""

    formula: str
    examples: tuple[tuple[str, float | None], ...]
    """Example responses: (text, visible tokens or None). The scorer computes their scores."""

    ranges: tuple[ScoreRange, ...] = ()
    """Words for its scores, the highest range first; empty for a profile without words."""

    yes: str | None = None
    """What responses with 1.00 do, such as `ask`, for a vector that says yes or no: each response
    has 0 or 1. None for a vector that changes by degrees."""

    def word_for(self, score: float) -> str | None:
        """Return the word for a score of this vector, or None if no range holds it."""
        return next((each.word for each in self.ranges if score >= each.least), None)


@dataclass(frozen=True, slots=True)
class Weights:
    """The vectors' weights in `overall`, by dimension; equal in other dimensions."""

    by_dimension: Mapping[str, Mapping[str, float]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def of(self, dimension: str | None, vectors: tuple[str, ...]) -> tuple[float, ...] | None:
        """Return one weight per vector, in the order of `vectors`; None if all count equally."""
        weights = self.by_dimension.get(dimension) if dimension else None
        if weights is None:
            return None
        return tuple(float(weights.get(vector, 0.0)) for vector in vectors)


@runtime_checkable
class Profile(Protocol):
    """A versioned recipe. It is pure: the same exchange always gives the same figures."""

    @property
    def name(self) -> str:
        """The name and version, such as `socratic-v1`."""
        ...

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vectors' names, in the order of `measure`."""
        ...

    @property
    def weights(self) -> Weights:
        """The vectors' weights in `overall`."""
        ...

    def describe(self) -> tuple[VectorDescription, ...]:
        """Return the vectors in words, in order."""
        ...

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Whether a response with this status has a score at all."""
        ...

    def measure(self, exchange: Exchange) -> tuple[float | None, ...]:
        """Return the vectors of one response, each 0.0 to 1.0, unrounded; None: not applicable.

        A vector that does not apply enters neither its own mean nor `overall`; cells count it.
        """
        ...

    def evidence(self, exchange: Exchange) -> Evidence:
        """Return the evidence for the figures of `measure`."""
        ...

    def legend(self) -> tuple[SpanKind, ...]:
        """Return the kinds of spans in `evidence`, with their meaning and mark on a page."""
        ...


@runtime_checkable
class CountingProfile(Profile, Protocol):
    """A profile that also counts something in each response that it scores.

    Cells sum the counts exactly, so that a share of runs or turns can be told from them: how many
    runs were at risk of a lapse in a turn, and how many lapsed.
    """

    @property
    def counts(self) -> tuple[str, ...]:
        """The names of the counts, in the order in which `count` gives them; none is a vector's."""
        ...

    def count(self, exchange: Exchange) -> tuple[int, ...]:
        """The counts of one response, each from 0 to MOST_COUNT."""
        ...


@runtime_checkable
class CombiningProfile(Profile, Protocol):
    """A profile whose `overall` is no mean of its vectors."""

    @property
    def overall_formula(self) -> str:
        """The formula of `overall`, for readers of its figures."""
        ...

    def combine(self, values: tuple[float | None, ...], dimension: str | None) -> float | None:
        """Return the overall of what `measure` gave, 0.0 to 1.0; None: unscored."""
        ...


@runtime_checkable
class SharingProfile(CombiningProfile, Protocol):
    """A combining profile that tells how far its figures fall with a vector.

    The interval of `overall` leaves room for a vector that falls in scenarios nobody asked. Without
    a declaration it leaves room for a fall of `overall` as far as that of any vector.
    """

    @property
    def shares(self) -> Mapping[str, Mapping[str, float]]:
        """By figure, `overall` or a vector that is made of others: how far it falls at most where a
        vector falls from 1 to 0, by vector. A vector that is not named moves nothing.
        """
        ...


def combining(profile: Profile) -> CombiningProfile | None:
    """Return the profile as one that combines its vectors; None if `overall` is their mean."""
    return cast("CombiningProfile", profile) if hasattr(profile, "combine") else None


def counting(profile: Profile) -> CountingProfile | None:
    """The profile as one that counts; None if it counts nothing."""
    # A look at the whole protocol would take as long as a score.
    return cast("CountingProfile", profile) if hasattr(profile, "counts") else None


def overall(values: tuple[float | None, ...], weights: tuple[float, ...] | None) -> float | None:
    """Return the mean of the vectors that apply, weighted unless `weights` is None.

    Returns None if no vector with a weight applies.
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
