"""The store role that keeps responses of models, and failures of runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure

NO_LEASE: Final = ""
"""Instead of the id of a lease: the response was not given under one."""


class TurnKey(NamedTuple):
    """One turn of one run."""

    run_id: str
    turn: int


class RecordedFailure(NamedTuple):
    """A failure that the runner stored before it published it."""

    failure: RunFailure
    retry: int
    """The number of the request that it answers: 0 is the plan's, each retry of the run one
    more."""


def latest_of_runs(failures: Iterable[RecordedFailure]) -> dict[str, RecordedFailure]:
    """Return the failure of each run that stays: the highest `retry`, the first of equal ones."""
    latest: dict[str, RecordedFailure] = {}
    for failed in failures:
        known = latest.setdefault(failed.failure.run.run_id, failed)
        if known.retry < failed.retry:
            latest[failed.failure.run.run_id] = failed
    return latest


class Responses(Protocol):
    """Keeps the responses and failures of runners; the first response of a turn stays."""

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> Sequence[Response]:
        """Store responses; the first write of a turn wins, under any lease.

        `lease_ids` names the leases of the calls, in the same order. None stands for a lease
        without reservation for a call of unknown cost, which just ends; NO_LEASE for a response
        without a call of this experiment, such as an adopted one. The store ends the leases:
        it replaces each reservation once by the cost of its response, where that is known, whether
        or not it stores that response. Returns the stored responses of those turns, in the same
        order; for a stored one that this version cannot read, the given one.

        For a deleted experiment the store changes nothing and returns the given responses.

        One response, the end of its lease and the change of its experiment's spending are atomic.
        Responses are independent of each other, even those of one run.
        """
        ...

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        """Return the stored responses of these runs, each run's in the order of its turns.

        The mapping leaves out runs without a response.
        """
        ...

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        """Return at most `limit` responses without a score under their experiment's profile.

        Those of side runs need none (`domain.run.is_side_run`).
        """
        ...

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures of runs. Of one run the highest `retry` stays, the first of equal ones.

        The store skips failures of deleted experiments. Each run is atomic by itself.
        """
        ...

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        """Return the stored failures of these runs."""
        ...

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        """Return at most `limit` failures that the runner stored and the curator did not fold.

        A failure at or before the turn of a folded failure of its run has nothing to fold.
        """
        ...
