"""Checks the weights of vectors that a configuration names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from socratic_bench.invalid_values import close_match, shown
from socratic_bench.planning.config_file.source import Mistakes, Node
from socratic_bench.scoring.profiles import known_profile
from socratic_bench.scoring.weighted_profile import unweighable, weights_of

WEIGHTS: Final = "weights"


def checked_weights(
    root: Node,
    weights: Mapping[str, Mapping[str, float]],
    profile: str,
    dimensions: Collection[str],
    mistakes: Mistakes,
) -> dict[str, dict[str, float]]:
    """Return the weights that differ from those of the profile, by dimension and vector.

    Notes each unknown dimension and vector, a dimension in which no vector counts, and a profile
    that takes no weights. Others note an unknown profile, and a missing scenario.
    """
    base = known_profile(profile) if weights else None
    if base is None:
        return {}
    if (problem := unweighable(base)) is not None:
        mistakes.add(root.place_of((WEIGHTS,)), problem)
        return {}
    found: dict[str, dict[str, float]] = {}
    for dimension, given in weights.items():
        if dimensions and dimension not in dimensions:
            place = root.place_of((WEIGHTS, dimension))
            mistakes.add(place, _unknown("dimension", dimension, dimensions))
            continue
        own = weights_of(base, dimension)
        for vector in given:
            if vector not in own:
                place = root.place_of((WEIGHTS, dimension, vector))
                mistakes.add(place, _unknown(f"vector of {profile}", vector, own))
        if not any({**own, **given}.values()):
            place = root.place_of((WEIGHTS, dimension))
            mistakes.add(place, "no vector counts: give one a weight of more than 0")
        if changed := {v: w for v, w in given.items() if w != own.get(v)}:
            found[dimension] = changed
    return found


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    meant = close_match(name, list(dict.fromkeys(known)))
    if meant is not None:
        return f"is no {kind}; did you mean {shown(meant)}?"
    return f"is no {kind}; there are: {', '.join(dict.fromkeys(known))}"
