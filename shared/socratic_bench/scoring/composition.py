"""How far each figure of a profile moves with each of its vectors: the parts of its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from socratic_bench.scoring.graded_profile import GradedProfile
from socratic_bench.scoring.profile import OVERALL, Profile, Weights, combining

_NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Composition:
    """How far `overall`, and vectors that are made of others, move with the vectors."""

    vectors: tuple[str, ...] | None
    """The profile's vectors, in its order; None: those that have scores."""

    moving: tuple[str, ...] | None
    """Those that `overall` may move with; None: all."""

    weights: Weights | None
    """Those of a linear profile, whose `overall` is a mean of its vectors; None for others."""

    shares: Mapping[str, Mapping[str, float]]
    """By figure: how far it falls at most where a vector falls from 1 to 0, by vector."""

    fewest: Mapping[str, int]
    """The fewest scenarios of an interval, for vectors that need more than other figures."""

    def shares_of(self, figure: str, vectors: tuple[str, ...]) -> Mapping[str, float]:
        """Return the share of each vector in a figure that is no mean, of these `vectors`.

        `overall` without a declaration may fall as far as each of its vectors.
        """
        declared = self.shares.get(figure)
        if declared is not None:
            return declared
        if figure != OVERALL:
            return _NOTHING
        return dict.fromkeys(vectors if self.moving is None else self.moving, 1.0)


UNKNOWN: Final = Composition(None, None, None, MappingProxyType({}), MappingProxyType({}))
"""That of a profile which is not installed: `overall` may fall as far as any vector."""


def composition_of(profile: Profile) -> Composition:
    """Return the composition of a profile's figures.

    A graded profile has that of its base: the grade stands for the vector that it replaces, and
    the heuristic beside it moves nothing.
    """
    if isinstance(profile, GradedProfile):
        return replace(composition_of(profile.base), vectors=profile.vectors)
    return Composition(
        vectors=profile.vectors,
        moving=profile.vectors,
        weights=None if combining(profile) else profile.weights,
        shares=getattr(profile, "shares", {}),
        fewest=getattr(profile, "fewest_scenarios", {}),
    )
