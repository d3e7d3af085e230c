"""The choice of a profile to read an experiment by."""

from __future__ import annotations

from collections.abc import Collection

from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.scoring.profiles import profile_named


class NoScores(InvalidInput):
    """No experiment in question has a score by the profile."""


async def common_profiles(store: Aggregates, experiment_ids: Collection[str]) -> tuple[str, ...]:
    """Return the profiles that all of these experiments have scores by, the first one's own first.

    An experiment's own profile is among them before its first score.
    """
    profiles = await store.scored_profiles(experiment_ids)
    first, *others = (profiles.get(id_, ()) for id_ in dict.fromkeys(experiment_ids))
    return tuple(name for name in first if all(name in each for each in others))


async def scored_by(store: Aggregates, experiment_ids: Collection[str], profile: str) -> list[str]:
    """Return those of these experiments that have scores by a profile, in their order.

    Raises NoScores if none has, with the command that makes them, and UnknownProfile for a profile
    that is not installed either.
    """
    profiles = await store.scored_profiles(experiment_ids)
    found = [id_ for id_ in experiment_ids if profile in profiles.get(id_, ())]
    if found or not experiment_ids:
        return found
    profile_named(profile)
    first = next(iter(experiment_ids))
    more = f" and {len(experiment_ids) - 1} more" if len(experiment_ids) > 1 else ""
    raise NoScores(
        f"{first}{more} has no score by {profile!r}; it has: "
        f"{', '.join(profiles.get(first, ())) or 'none'}. "
        f"Score it without a model: socratic-bench rescore {first} --profile {profile}"
    )
