"""The scorer profiles of this version, by name."""

from __future__ import annotations

from types import MappingProxyType

from socratic_bench.errors import UnknownProfile
from socratic_bench.scoring.profile import Profile
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

CANONICAL = "socratic-v1"
"""The profile used where none is named."""

PROFILES: MappingProxyType[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (SocraticV1(),)}
)


def profile_named(name: str) -> Profile:
    """The profile called `name`. Raises UnknownProfile, naming the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(sorted(PROFILES))
        raise UnknownProfile(f"unknown scorer profile {name!r}; known: {known}") from None
