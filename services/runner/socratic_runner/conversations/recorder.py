"""What a runner stores of its calls, in groups, until the store has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.leases import Lease
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure, Responses
from socratic_runner.conversations.write_patience import WritePatience


@dataclass(frozen=True, slots=True)
class Recorded:
    """A response to store, and the lease of its call; None for an adopted one."""

    response: Response
    lease: Lease | None

    @property
    def lease_to_settle(self) -> str | None:
        """The id of the lease; None for one that reserved nothing and needs no settlement."""
        if self.lease is None:
            return NO_LEASE
        return self.lease.key.lease_id if self.lease.reserve else None


class Recorder:
    """Stores replies and failures before anything else happens to them.

    It waits for the store until the drain deadline. Only then does it give up a paid reply.
    """

    def __init__(self, store: Responses, waits: Waits) -> None:
        self._store = store
        self._closing = asyncio.Event()
        # D-057: until the drain deadline; letting a reply go means paying twice.
        patience = WritePatience(waits, self._closing)
        self._record = patience.grouped(self._record_now)
        self._kept: dict[tuple[str, int], asyncio.Future[Sequence[Response]]] = {}
        """The storing under way, by run and turn."""

        self._fail = patience.grouped(self._fail_now)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Store while the context is open, and what is left at its end once more."""
        async with self._record, self._fail:
            try:
                yield
            finally:
                self._closing.set()

    async def record(self, responses: Sequence[Recorded]) -> Sequence[Response]:
        """Store responses; returns the stored ones of their turns, since the first write wins.

        A cancellation ends the wait, and not the storing.
        """
        return await asyncio.shield(self.begin(responses))

    def begin(self, responses: Sequence[Recorded]) -> asyncio.Future[Sequence[Response]]:
        """Return the future of what `record` returns; it may fail after its caller has gone."""
        storing = self._record.begin(responses)
        storing.add_done_callback(_take_note)
        turns = [(each.response.run.run_id, each.response.turn) for each in responses]
        self._kept.update(dict.fromkeys(turns, storing))
        storing.add_done_callback(lambda _: self._forget(turns, storing))
        return storing

    def keeps(self, run_id: str, turn: int) -> bool:
        """Tell whether a reply to a turn is on its way to the store."""
        return (run_id, turn) in self._kept

    async def kept(self, run_id: str, turn: int) -> Response | None:
        """Return the stored response of a turn whose reply is on its way to the store.

        None for any other turn. A cancelled caller left the reply here, paid for; the store would
        grant this owner another call. Raises the errors of `record`.
        """
        storing = self._kept.get((run_id, turn))
        if storing is None:
            return None
        stored = {(each.run.run_id, each.turn): each for each in await asyncio.shield(storing)}
        return stored.get((run_id, turn))

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures, before they are published."""
        await self._fail(failures)

    def _forget(
        self, turns: Sequence[tuple[str, int]], storing: asyncio.Future[Sequence[Response]]
    ) -> None:
        for turn in turns:
            if self._kept.get(turn) is storing:
                del self._kept[turn]

    async def _record_now(self, recorded: Sequence[Recorded]) -> Sequence[Response]:
        return await self._store.record(
            [each.response for each in recorded], [each.lease_to_settle for each in recorded]
        )

    async def _fail_now(self, failures: Sequence[RecordedFailure]) -> Sequence[None]:
        await self._store.record_failures(failures)
        return [None for _ in failures]


def _take_note(storing: asyncio.Future[Sequence[Response]]) -> None:
    """Mark an error as seen: a caller that was cancelled no longer waits for it."""
    if not storing.cancelled():
        storing.exception()
