"""A profile with other weights of its vectors: the same measures, another `overall`.

Such a profile reads the scores of its base profile, and has none of its own. It is named after its
base and a hash of its weights. A process knows it once it has read a plan with these weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from socratic_bench.errors import UnknownProfile
from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.profile import Profile, VectorDescription, Weights, combining

MARK: Final = "+w-"
"""What stands between the name of the base profile and the hash of the weights."""

GivenWeights: TypeAlias = Mapping[str, Mapping[str, float]]
"""Weights by dimension and vector. A vector that is not named keeps the weight of the base profile,
which is 1 unless the profile says otherwise; so does a dimension."""

_known: dict[str, GivenWeights] = {}


def is_weighted(name: str) -> bool:
    """Whether a profile's name is that of one with other weights."""
    return MARK in name


def stored_profile(name: str) -> str:
    """Return the profile whose scores the profile called `name` reads: itself, or its base."""
    return name.rpartition(MARK)[0] if is_weighted(name) else name


def remember(name: str, weights: GivenWeights) -> None:
    """Make weights known to this process by the name of the profile with them."""
    _known.setdefault(name, weights)


def known_weights(name: str) -> GivenWeights | None:
    """Return the weights of the profile called `name`; None for unknown ones."""
    return _known.get(name)


class WeightedProfile:
    """The base profile with other weights in some dimensions."""

    def __init__(self, base: Profile, name: str) -> None:
        """Raise UnknownProfile for weights that no plan has named, or that the base cannot take."""
        given = _known.get(name)
        if given is None:
            raise UnknownProfile(
                f"unknown weights {name!r}: no experiment of this store names them; write them as "
                "`weights` into a configuration, and run it"
            )
        if (problem := unweighable(base)) is not None:
            raise UnknownProfile(problem)
        self.base = base
        self.name = name
        self.vectors = base.vectors
        self.given = given
        self.weights = Weights(
            {
                **base.weights.by_dimension,
                **{dimension: _all(base, dimension, given[dimension]) for dimension in given},
            }
        )

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score what the base profile scores."""
        return self.base.may_score(status, visible_tokens)

    def measure(self, exchange: Exchange) -> tuple[float | None, ...]:
        return self.base.measure(exchange)

    def evidence(self, exchange: Exchange) -> Evidence:
        return self.base.evidence(exchange)

    def describe(self) -> tuple[VectorDescription, ...]:
        return self.base.describe()

    def legend(self) -> tuple[SpanKind, ...]:
        return self.base.legend()

    def sentence(self) -> str:
        """Return the weights as a sentence."""
        named = "; ".join(
            f"{dimension}: {', '.join(f'{vector} {weight:g}' for vector, weight in each.items())}"
            for dimension, each in self.given.items()
        )
        return f"{self.name} is {self.base.name} with the weights {named}; all others stay."


def unweighable(profile: Profile) -> str | None:
    """Return why a profile takes no other weights; None if it does."""
    if combining(profile) is None:
        return None
    return (
        f"{profile.name} is no weighted mean of its vectors, so it takes no weights: choose a "
        "profile that is one, such as socratic-v1, or remove the weights"
    )


def weights_of(profile: Profile, dimension: str) -> dict[str, float]:
    """Return the weight of each vector of a profile in a dimension; 1 where all count equally."""
    weights = profile.weights.of(dimension, profile.vectors) or (1.0,) * len(profile.vectors)
    return dict(zip(profile.vectors, weights, strict=True))


def _all(base: Profile, dimension: str, given: Mapping[str, float]) -> dict[str, float]:
    return {
        vector: given.get(vector, weight) for vector, weight in weights_of(base, dimension).items()
    }
