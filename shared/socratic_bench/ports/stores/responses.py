"""The role of the store that keeps what models answered, and which runs failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure


class TurnKey(NamedTuple):
    """One turn of one run."""

    run_id: str
    turn: int


class RecordedFailure(NamedTuple):
    """A failure as the runner stored it, before it was published."""

    failure: RunFailure
    retry: int
    """Which request it answers: 0 is the plan's, and each request to retry the run is one more."""


class Responses(Protocol):
    """Keeps responses and failures as runners record them; the first response of a turn stays."""

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None] = ()
    ) -> Sequence[Response]:
        """Store responses; the first write of a turn wins, under whichever lease.

        `lease_ids` names, in the same order, the leases under which the calls were made; None is
        a lease that reserved nothing for a call whose cost is not known: it just ends. They are
        over: the store replaces the reservation of each by the cost of its response, where that is
        known, and whether or not the response is the one that is stored. A lease that is over is
        not replaced a second time. Returns, in the same order, the responses that are stored for
        those turns now.

        The store neither stores nor settles anything for an experiment that is deleted: it returns
        such responses as they were given.

        One response, the end of its lease and the change of its experiment's spending are atomic.
        Responses are independent of each other, even those of one run.
        """
        ...

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        """The stored responses of these runs, each run's in the order of its turns.

        A run without any is not in the mapping.
        """
        ...

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        """Stored responses without a score under the experiment's profile, at most `limit`."""
        ...

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures of runs. Of one run the highest `retry` stays, the first of equal ones.

        The store passes over those of deleted experiments. Each run is atomic by itself.
        """
        ...

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        """The stored failures of these runs."""
        ...

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        """Failures that the runner stored and that were not folded, at most `limit`.

        A failure at a turn up to which the run is known to have failed has nothing to fold.
        """
        ...
