"""The leases of one runner: it claims and ends them in groups, and outlasts an absent store."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Final

from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.leases import CallEnd, Lease, LeaseKey, Leases
from socratic_runner.leases.heartbeat import Heartbeat, HeldLeases
from socratic_runner.leases.recorder import WritePatience
from socratic_runner.troubles import Troubles

STOPPED_SECONDS: Final = 3_600.0
"""Seconds for which the runner remembers a claim that was refused as stopped: every unused lease is
younger."""

BEATS_AGAIN: Final = RetryPolicy(first_delay=0.25, longest_delay=1.0)
"""A store that comes back hears of a live owner before others may judge its silence."""

CANCEL_PATIENCE: Final = 5.0
"""Seconds that a cancelled task waits for the store's answer, to know the leases to give back."""


class LeaseBook:
    """Takes and ends the leases of one owner, and keeps the owner alive.

    Every request to the store has an id and is idempotent, so the runner repeats it until the store
    answers, or until it stops waiting.
    """

    def __init__(
        self,
        store: Leases,
        owner: str,
        waits: Waits,
        draining: asyncio.Event,
        troubles: Troubles,
    ) -> None:
        """`owner` is unique for this process. Once `draining` is set, claims of leases no longer
        wait for the store. Heartbeats carry `troubles`.
        """
        self._store = store
        self.owner = owner
        self.answers: Counter[LeaseAnswer] = Counter()
        """How often the store gave each answer to a claim."""

        # Not made at import: a forked process would make the ids of another one. Random bytes for
        # each lease are a system call, for which the thread gives up Python's lock.
        self._id_begins = os.urandom(5).hex()
        self._id_numbers = count(1)

        self._stopped_at: dict[str, float] = {}
        """When the store last refused a claim of a stopped experiment, by experiment."""

        self.held = HeldLeases()

        self._closing = asyncio.Event()
        beginning = WritePatience(waits, draining, StoreUnavailable)
        ending = WritePatience(waits, self._closing)
        beats = replace(beginning, retry_policy=BEATS_AGAIN)
        self.heartbeat = Heartbeat(store, owner, beats, troubles, self.held)
        self._take = beginning.grouped(self._take_now)
        self._give_back = ending.grouped(self._give_back_now)
        self._end = ending.grouped(self._end_now)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the owner alive while the context is open, and free its leases at the end."""
        async with self.heartbeat.open(), self._take, self._give_back, self._end:
            try:
                yield
            finally:
                self._closing.set()

    def new_id(self) -> str:
        """Return the id of a new lease: ids are compared within one turn only."""
        return f"{self._id_begins}{next(self._id_numbers):06x}"

    def may_begin(self, lease: Lease, taken_at: float) -> bool:
        """Tell whether a call may begin under a lease that was taken at this time of the loop.

        The owner certainly still holds it, and the store has refused no claim of the experiment as
        stopped since then.
        """
        stopped_at = self._stopped_at.get(lease.key.experiment_id, float("-inf"))
        return self.heartbeat.certain and stopped_at < taken_at

    async def take(self, leases: Sequence[Lease]) -> Sequence[LeaseAnswer]:
        """Call `Leases.take_leases`; a cancellation waits for the answer for a while.

        Raises StoreUnavailable once the runner drains.
        """
        claimed_at = asyncio.get_running_loop().time()
        await self.heartbeat.beat_if_due()
        answers = await finish_despite_cancel(self._take.begin(leases), patience=CANCEL_PATIENCE)
        for lease, answer in zip(leases, answers, strict=True):
            if answer is LeaseAnswer.GRANTED:
                self.held.add(lease, claimed_at)
        return answers

    async def give_back(self, leases: Sequence[LeaseKey]) -> None:
        """End leases whose calls never began."""
        for lease in leases:
            self.held.discard(lease)
        await self._give_back(leases)

    async def end_calls(self, ends: Sequence[CallEnd]) -> None:
        """End leases whose calls ended without a reply."""
        try:
            await self._end(ends)
        finally:
            for end in ends:
                self.held.discard(end.lease)

    async def _take_now(self, leases: Sequence[Lease]) -> Sequence[LeaseAnswer]:
        answers = await self._store.take_leases(
            leases, self.owner, may_judge=self.heartbeat.may_judge
        )
        self.answers.update(answers)
        if LeaseAnswer.STOPPED in answers:
            self._note_stopped(
                lease.key.experiment_id
                for lease, answer in zip(leases, answers, strict=True)
                if answer is LeaseAnswer.STOPPED
            )
        return answers

    def _note_stopped(self, experiment_ids: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        recent = {id_: at for id_, at in self._stopped_at.items() if now - at < STOPPED_SECONDS}
        self._stopped_at = recent | dict.fromkeys(experiment_ids, now)

    async def _give_back_now(self, leases: Sequence[LeaseKey]) -> Sequence[None]:
        await self._store.give_back_leases(leases)
        return [None for _ in leases]

    async def _end_now(self, ends: Sequence[CallEnd]) -> Sequence[None]:
        await self._store.end_calls(ends)
        return [None for _ in ends]
