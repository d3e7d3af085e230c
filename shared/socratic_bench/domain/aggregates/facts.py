"""The keys of facts, and which of several failures of a run counts.

A score counts once, by its key. A failure counts unless its run ended with a response; of several
failures of a run counts the one at the highest turn, the first of several there. So figures do not
depend on the order in which facts arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


class ScoreKey(NamedTuple):
    """The key of a score."""

    experiment_id: str
    run_id: str
    turn: int
    profile: str


class RunKey(NamedTuple):
    """A run under a profile: the key of its end and of its failure."""

    experiment_id: str
    run_id: str
    profile: str


def score_of(scored: ScoredResponse) -> ScoreKey:
    """Return the key of a score."""
    run = scored.run
    return ScoreKey(run.experiment_id, run.run_id, scored.turn, scored.profile)


def run_of(fact: ScoredResponse | RunFailure) -> RunKey:
    """Return the run that a fact is about."""
    return RunKey(fact.run.experiment_id, fact.run.run_id, fact.profile)


def outranks(failure: RunFailure, stored: RunFailure | None) -> bool:
    """Whether a failure takes the place of the stored one of its run."""
    return stored is None or stored.turn < failure.turn


def furthest(failures: Iterable[RunFailure]) -> dict[RunKey, RunFailure]:
    """Return the failure of each run that counts, if the run did not end with a response."""
    found: dict[RunKey, RunFailure] = {}
    for failure in failures:
        if outranks(failure, found.get(run_of(failure))):
            found[run_of(failure)] = failure
    return found
