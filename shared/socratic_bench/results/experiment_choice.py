"""The choice of an experiment by its id, name or occasion, and of the profile to read it by."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from itertools import chain
from typing import Final, Protocol

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.weighing import weighed_cell, weighed_score
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import AmbiguousExperiment, InvalidInput, UnknownExperiment
from socratic_bench.invalid_values import close_match, quoted
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.results.formats import moment
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.weighted_profile import is_weighted, known_weights, stored_profile


class ResultStore(Experiments, Aggregates, Protocol):
    """Experiments and their cells: what tables and their checks read."""


class CostedStore(ResultStore, Leases, Protocol):
    """Their costs, too: what a leaderboard reads."""


_WEEKS: Final = re.compile(r"weeks:([1-9]\d{0,2})", re.ASCII)

MOST_NAMED = 5
"""The most experiments that an error about an ambiguous text names."""


async def find_experiment(store: Experiments, wanted: str) -> Experiment:
    """Return the experiment of this id, or the only one with this start of id, occasion or name.

    A whole id always means its experiment. `~0` behind a text means the newest one of it, `~1` the
    one before that. Raises UnknownExperiment for an unknown or deleted one, and AmbiguousExperiment
    where several match.
    """
    if found := await store.experiment(wanted):
        return found
    outlines = await store.outlines()
    meant = [each for each in outlines if _is_called(each, wanted)]
    name, steps = _before_newest(wanted)
    if not meant and steps is not None:
        meant = _newest_first(outlines, name)[steps : steps + 1]
    if len(meant) > 1:
        named = ", ".join(
            f"{each.experiment_id} ({moment(each.created_at)})" for each in meant[:MOST_NAMED]
        )
        more = ", …" if len(meant) > MOST_NAMED else ""
        newest = f", or {f'{wanted}~0'!r} for the newest" if _newest_first(meant, wanted) else ""
        raise AmbiguousExperiment(
            f"{wanted!r} could be {len(meant)} experiments: {named}{more}; "
            f"write the id of one{newest}"
        )
    if meant and (found := await store.experiment(meant[0].experiment_id)):
        return found
    if ExperimentState.DELETED in (await store.states([wanted])).values():
        raise UnknownExperiment(f"experiment {wanted} was deleted")
    known = {text for each in outlines for text in (each.name, each.occasion) if text}
    like = close_match(wanted, sorted(known))
    remedy = "write its id, the start of the id, its occasion or its name"
    if like is not None:
        remedy = f"did you mean {quoted(like)}?"
    raise UnknownExperiment(f"there is no experiment {wanted!r} in this store: {remedy}")


def find_baseline(
    outlines: Sequence[ExperimentOutline], wanted: str, gated: ExperimentOutline
) -> list[ExperimentOutline]:
    """Return the baseline of an experiment, newest first: one experiment, or those of some weeks.

    `wanted` is an id, the start of one, an occasion or a name, and means the newest other one of
    it; `~1` behind it means the one before the newest. `weeks:4` means all of the same conditions
    of the four weeks before. The experiment itself is its baseline only where there is no other
    one. `outlines` are newest first. Raises UnknownExperiment.
    """
    if weeks := _WEEKS.fullmatch(wanted):
        since = gated.created_at - int(weeks[1]) * timedelta(weeks=1)
        earlier = [
            each
            for each in outlines
            if each.experiment_id != gated.experiment_id
            and since <= each.created_at <= gated.created_at
        ]
        found = [each for each in earlier if each.conditions_id == gated.conditions_id]
        if not found:
            raise UnknownExperiment(
                f"{wanted!r}: this store has no other experiment under the conditions of "
                f"{gated.experiment_id} in these weeks, and {len(earlier)} under other ones: run "
                "the same configuration on more occasions, or take more weeks"
            )
        return found
    name, steps = _before_newest(wanted)
    named = _newest_first(outlines, name)
    others = [each for each in named if each.experiment_id != gated.experiment_id] or named
    if (steps or 0) < len(others):
        return [others[steps or 0]]
    if not named:
        raise UnknownExperiment(
            f"there is no experiment {name!r} in this store: "
            "write its id, the start of the id, its occasion or its name"
        )
    raise UnknownExperiment(f"{wanted!r}: the newest {name!r} has {len(others)} before it")


def matching(experiments: Sequence[ExperimentOutline], text: str) -> list[ExperimentOutline]:
    """Return the experiments that fit every word of a text.

    A word begins the id, or stands in the name, the occasion or the id of a model.
    """
    words = text.casefold().split()

    def matches(each: ExperimentOutline) -> bool:
        parts = (each.name or "", each.occasion or "", *each.model_ids)
        searched = "\n".join(parts).casefold()
        # Within an id, every short number would be found.
        begins = (each.experiment_id, each.experiment_id.partition("-")[2])
        return all(
            word in searched or any(id_.startswith(word) for id_ in begins) for word in words
        )

    return [each for each in experiments if matches(each)]


_STEPS: Final = re.compile(r"(.+)~(\d{1,3})", re.ASCII | re.DOTALL)


def _before_newest(wanted: str) -> tuple[str, int | None]:
    """Return `main` and 1 for `main~1`, and a text without such an end as it is, with None."""
    found = _STEPS.fullmatch(wanted)
    return (wanted, None) if found is None else (found[1], int(found[2]))


def _newest_first(outlines: Sequence[ExperimentOutline], name: str) -> list[ExperimentOutline]:
    """Return the experiments of an id, or else of a name or occasion, or else of a start of id."""
    return (
        [each for each in outlines if each.experiment_id == name]
        or [each for each in outlines if name in {each.name, each.occasion}]
        or [each for each in outlines if _begins(each, name)]
    )


def _begins(experiment: ExperimentOutline, text: str) -> bool:
    """Whether a text is the start of an id, and more than what all ids begin with."""
    prefix = experiment.experiment_id.partition("-")[0] + "-"
    return len(text) > len(prefix) and experiment.experiment_id.startswith(text)


def _is_called(experiment: ExperimentOutline, text: str) -> bool:
    begins = text and experiment.experiment_id.startswith(text)
    return bool(begins) or text in {experiment.occasion, experiment.name}


class NoScores(InvalidInput):
    """No experiment in question has a score by the profile."""


async def common_profiles(store: ResultStore, experiment_ids: Collection[str]) -> tuple[str, ...]:
    """Return the profiles that all of these experiments have scores by, the first one's own first.

    An experiment's own profile is among them before its first score. Those with other weights that
    one of them names come last.
    """
    profiles = await store.scored_profiles(experiment_ids)
    first, *others = (profiles.get(id_, ()) for id_ in dict.fromkeys(experiment_ids))
    common = tuple(name for name in first if all(name in each for each in others))
    named = (each.manifest.weightings for each in await store.experiments(experiment_ids))
    return with_weighted(common, chain.from_iterable(named))


def with_weighted(profiles: Sequence[str], weightings: Iterable[str]) -> tuple[str, ...]:
    """Return these profiles, and those of the profiles with other weights whose base is one."""
    weighted = (name for name in dict.fromkeys(weightings) if stored_profile(name) in profiles)
    return (*profiles, *weighted)


async def scored_by(store: ResultStore, experiment_ids: Collection[str], profile: str) -> list[str]:
    """Return those of these experiments that have scores by a profile, in their order.

    A profile with other weights reads the scores of its base. Raises NoScores if none has, with the
    command that makes them, and UnknownProfile for a profile that is not installed either, and for
    weights that no experiment of the store names.
    """
    if is_weighted(profile):
        if known_weights(profile) is None:
            await store.outlines()  # reading a plan makes its weights known
        profile_named(profile)
        profile = stored_profile(profile)
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


def cells_under(cells: Iterable[Cell], profile: str) -> list[Cell]:
    """Return those of these cells that are under a profile, in their order.

    A profile with other weights has those of its base, weighed. Raises UnknownProfile for unknown
    weights, and InvalidInput where a vector with a weight does not apply to some response.
    """
    own = [cell for cell in cells if cell.key.profile == stored_profile(profile)]
    if not is_weighted(profile):
        return own
    weighted = profile_named(profile)
    return [weighed_cell(cell, weighted) for cell in own]


def scores_under(scores: Iterable[ScoredResponse], profile: str) -> list[ScoredResponse]:
    """Return those of these scores that are under a profile, as `cells_under` does."""
    own = [each for each in scores if each.profile == stored_profile(profile)]
    if not is_weighted(profile):
        return own
    weighted = profile_named(profile)
    return [weighed_score(each, weighted) for each in own]
