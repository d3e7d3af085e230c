"""The scorer profiles by name: the built-in ones, and profiles of installed distributions.

A distribution offers a profile under the entry point group `socratic_bench.profiles`: a class or a
function that makes it without arguments. The entry point has the profile's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from socratic_bench.errors import BrokenPlugin, UnknownProfile
from socratic_bench.plugins import Plugin, found
from socratic_bench.scoring.composition import UNKNOWN, Composition, composition_of
from socratic_bench.scoring.fidelity.profile import Fidelity, FidelitySeed
from socratic_bench.scoring.graded_profile import GRADED, SUFFIX, GradedProfile
from socratic_bench.scoring.profile import (
    MOST_VECTORS,
    OVERALL,
    SAME_RULER,
    CountingProfile,
    Profile,
    SharingProfile,
    counting,
)
from socratic_bench.scoring.socratic_v1.profile import SameRuler, SocraticV1
from socratic_bench.scoring.socratic_v2.profile import SocraticV2, SocraticV3
from socratic_bench.scoring.weighted_profile import (
    WeightedProfile,
    is_weighted,
    stored_profile,
)

GROUP: Final = "socratic_bench.profiles"

TAKEN: Final = frozenset(
    {OVERALL, "status", "evidence", "visible_text", "id", "error", "runs", "coverage"}
)
"""Keys beside the vectors in JSON: no vector may take their names."""

_BUILT_IN: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (SocraticV1(), SocraticV2(), SocraticV3(), Fidelity(), FidelitySeed())
}

_SAME_RULER: Final = SameRuler()
"""A reading of `socratic-v1`, in no list of recipes: lists name it beside graded profiles."""


def profile_named(name: str) -> Profile:
    """Return the profile called `name`.

    Raises UnknownProfile, naming the known ones, or BrokenPlugin, naming the distribution.
    """
    built_in = _SAME_RULER if name == SAME_RULER else _BUILT_IN.get(name)
    if built_in is not None:
        return built_in
    return _weighted(name) if is_weighted(name) else _installed(name)


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles, the built-in ones first, without loading the others.

    Each profile that measures `exploratory` has a graded one besides, whose name ends with `-llm`.
    """
    return (*_BUILT_IN, *(name for name in found(GROUP) if name not in _BUILT_IN))


def known_profile(name: str) -> Profile | None:
    """Return the profile called `name`; None if this installation cannot load it."""
    try:
        return profile_named(name)
    except (UnknownProfile, BrokenPlugin):
        return None


def known_vectors(name: str) -> tuple[str, ...] | None:
    """Return the vectors of the profile called `name`; None if this installation cannot load it."""
    profile = known_profile(name)
    return None if profile is None else profile.vectors


def known_composition(name: str) -> Composition:
    """Return the composition of the profile called `name`; UNKNOWN if this installation cannot load
    it.
    """
    try:
        return composition_of(profile_named(name))
    except (UnknownProfile, BrokenPlugin):
        return UNKNOWN


def yes_or_no_vectors(name: str) -> Mapping[str, str]:
    """Return what responses do that have 1, by vector that says yes or no: `ask`.

    Empty for a profile that this installation cannot load.
    """
    try:
        described = profile_named(name).describe()
    except (UnknownProfile, BrokenPlugin):
        return {}
    return {each.name: each.yes for each in described if each.yes is not None}


def weights_sentence(name: str) -> str | None:
    """Return the weights of the profile called `name` as a sentence; None for other profiles."""
    weighted = profile_named(name) if is_weighted(name) else None
    return weighted.sentence() if isinstance(weighted, WeightedProfile) else None


def graded_names() -> tuple[str, ...]:
    """Return the names of the graded profiles, without those of defective profiles.

    Loads all profiles.
    """
    named = (name + SUFFIX for name in profile_names())
    return tuple(name for name in named if known_vectors(name) is not None)


def needs_grade(name: str) -> bool:
    """Whether the profile called `name` needs a model's grade of the response.

    Raises UnknownProfile or BrokenPlugin.
    """
    return isinstance(profile_named(name), GradedProfile)


def is_registered(profile: Profile) -> bool:
    """Whether `profile` is the registered profile of its name."""
    try:
        return profile_named(profile.name) is profile
    except (UnknownProfile, BrokenPlugin):
        return False


@cache
def _weighted(name: str) -> WeightedProfile:
    return WeightedProfile(profile_named(stored_profile(name)), name)


@cache
def _installed(name: str) -> Profile:
    plugin = found(GROUP).get(name)
    if plugin is not None:
        return _made(plugin)
    if name.endswith(SUFFIX) and (graded := _graded(name.removesuffix(SUFFIX))) is not None:
        return graded
    known = ", ".join(profile_names())
    raise UnknownProfile(f"unknown scorer profile {name!r}; known: {known}")


def _graded(base: str) -> GradedProfile | None:
    """Return the graded profile of a base profile; None if there is no such base profile.

    Raises UnknownProfile for a base profile that leaves nothing to grade.
    """
    if base not in profile_names():
        return None
    profile = profile_named(base)
    if GRADED not in profile.vectors:
        raise UnknownProfile(f"profile {base} has no vector {GRADED}, which a model could grade")
    if counting(profile):
        raise UnknownProfile(f"profile {base} counts besides: a model cannot grade for it")
    return GradedProfile(profile)


def _made(plugin: Plugin) -> Profile:
    make = plugin.load()
    try:
        profile = make()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise plugin.broken(f"cannot be made without arguments: {said}") from error
    if not isinstance(profile, Profile):
        raise plugin.broken("does not make a socratic_bench.scoring.profile.Profile")
    if profile.name != plugin.name:
        raise plugin.broken(f"calls itself {profile.name!r}: the entry point needs that name")
    vectors = profile.vectors
    if len(vectors) > MOST_VECTORS:
        raise plugin.broken(f"has {len(vectors)} vectors; the most are {MOST_VECTORS}")
    if not vectors or len(set(vectors)) < len(vectors) or TAKEN & set(vectors):
        raise plugin.broken(f"needs vectors of different names, none of {', '.join(sorted(TAKEN))}")
    _check_counts(plugin, profile)
    _check_shares(plugin, profile)
    for dimension, weights in profile.weights.by_dimension.items():
        if unknown := sorted(set(weights) - set(vectors)):
            raise plugin.broken(
                f"weighs {', '.join(unknown)} in {dimension!r}, which it does not measure"
            )
        if min(weights.values(), default=0) < 0 or not any(weights.values()):
            raise plugin.broken(f"needs a positive weight in {dimension!r}, and no negative one")
    return profile


def _check_shares(plugin: Plugin, profile: Profile) -> None:
    if not hasattr(profile, "shares"):
        return
    if not isinstance(profile, SharingProfile):
        raise plugin.broken("has `shares` but no `combine`: see SharingProfile there")
    for figure, shares in profile.shares.items():
        if unknown := sorted({figure, *shares} - {OVERALL, *profile.vectors}):
            raise plugin.broken(
                f"names {', '.join(unknown)} in `shares`, which it does not measure"
            )
        if not all(0 <= share <= 1 for share in shares.values()):
            raise plugin.broken(f"needs shares of {figure!r} from 0 to 1")


def _check_counts(plugin: Plugin, profile: Profile) -> None:
    if not (counted := counting(profile)):
        return
    if not isinstance(counted, CountingProfile):
        raise plugin.broken("has `counts` but no `count`: see CountingProfile there")
    if len(counted.counts) > MOST_VECTORS:
        raise plugin.broken(f"has {len(counted.counts)} counts; the most are {MOST_VECTORS}")
    names = (*profile.vectors, *counted.counts)
    if len(set(names)) < len(names) or TAKEN & set(counted.counts):
        raise plugin.broken(f"needs counts of other names, none of {', '.join(sorted(TAKEN))}")
