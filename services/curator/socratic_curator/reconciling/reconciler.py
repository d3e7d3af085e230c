"""Sending again what a broker lost: what should have happened stands in the store.

A request, a response or a score that is lost leaves an experiment unfinished for good, since nobody
waits for it. The reconciler compares what running experiments should have with what they have, and
sends only what nobody seems to have in hand. Everything it sends is idempotent: sent needlessly, it
costs a look-up.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final
from uuid import uuid4

import structlog

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import BrokerError, ExperimentStopped, StoreError, StoreUnreadable
from socratic_bench.planning.plan import PlanStore
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Experiments, RunningExperiment
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_curator.reconciling.healer import Healer, SentAgain
from socratic_curator.reconciling.watched import QUIET_SECONDS, WatchedExperiment

log = structlog.get_logger(__name__)

EXPIRY_LOOK_SECONDS: Final = 600.0
"""Seconds between two looks for expired experiments."""

MOST_BATCHES: Final = 20
"""The most batches of rows that one pass removes: other work waits for the same process."""


class Expiry:
    """Deletes experiments. One process at a time does so."""

    def __init__(
        self,
        store: Experiments,
        clock: Clock,
        after: timedelta | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`after` is the time from completion to deletion; None: keep experiments for ever."""
        self._store = store
        self._clock = clock
        self._after = after
        self._monotonic = monotonic
        self._due_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for expired experiments."""
        return self._monotonic() >= self._due_at

    async def expire(self) -> None:
        """Remove some experiments, if a look is due. Raises StoreError."""
        if not self.is_due:
            return
        now = self._monotonic()
        before = None if self._after is None else self._clock.now() - self._after
        steps = MOST_BATCHES
        for experiment_id in await self._store.deletable(before):
            await self._store.change_state(experiment_id, ExperimentState.DELETED)
            while steps and await self._store.delete_rows(experiment_id):
                steps -= 1
            if not steps:
                return
            log.info("deleted", correlation_id=experiment_id)
        self._due_at = now + EXPIRY_LOOK_SECONDS


LOOK_SECONDS: Final = 10.0
"""Seconds between two passes."""

TURN_SECONDS: Final = 45.0
"""For how long a process is the one that reconciles, after each pass."""

MOST_A_PASS: Final = 1_000
"""Lost runs of one experiment that a pass requests, at most. Where more are lost, the next pass
follows at once: each experiment has its turn, and a large loss takes no longer than planning."""

LEAVE_SECONDS: Final = 3.0
"""How long the store may take to note that another process may go on."""


class Reconciler:
    """Heals running experiments. Several processes may have one; one at a time is at work."""

    def __init__(
        self,
        store: PlanStore,
        broker: Broker,
        clock: Clock,
        owner: str,
        *,
        quiet: float = QUIET_SECONDS,
        delete_after: timedelta | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` is unique for this process. For `quiet` seconds nothing may have changed before
        anything is sent again. Experiments that have been complete for `delete_after` are deleted.
        """
        self._store = store
        self._owner = owner
        self._monotonic = monotonic
        self._quiet = quiet
        self._watched: dict[str, WatchedExperiment] = {}
        self._left: set[str] = set()
        """Experiments that are left to a newer version, of which the log was told."""
        self._turn: LeaseKey | None = None
        self._healer = Healer(store, broker, clock, monotonic)
        self._expiry = Expiry(store, clock, delete_after, monotonic)

    @property
    def sent_again(self) -> Counter[SentAgain]:
        """How much of each kind was sent again since the start."""
        return self._healer.sent_again

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            more = False
            try:
                more = await self.reconcile()
            except (StoreError, BrokerError) as error:
                log.info("cannot reconcile now", reason=str(error))
            except Exception:
                # Nobody else would notice that experiments are healed no longer.
                log.exception("reconciler failed")
            if not more:
                await asyncio.sleep(LOOK_SECONDS)

    async def reconcile(self) -> bool:
        """One pass, if it is this process's turn; returns whether more is lost than it sent.

        Raises StoreError and BrokerError.
        """
        running = [each for each in await self._store.running() if each.state.calls_may_begin]
        # D-363: with nothing to do a pass takes no turn, which is a write.
        if not (running or self._expiry.is_due) or not await self._is_mine():
            self._watched.clear()
            return False
        self._forget_all_but(running)
        more = False
        for each in running:
            watched = await self._watch(each)
            if watched is None or not watched.is_due(each, self._monotonic()):
                continue
            try:
                await self._heal(each, watched)
                more = more or watched.has_more
            except ExperimentStopped:
                continue  # just now
            except (StoreError, BrokerError):
                raise
            except Exception:
                # A fault that one experiment shows must not keep the others from being healed.
                log.exception("cannot reconcile", correlation_id=each.experiment_id)
        await self._expiry.expire()
        return more

    async def leave(self) -> None:
        """Let another process go on at once."""
        if self._turn is not None:
            await self._store.give_back_leases([self._turn])

    async def _is_mine(self) -> bool:
        turn = LeaseKey("reconciler", "reconciler", 1, uuid4().hex)
        [answer] = await self._store.take_leases([Lease(turn, TURN_SECONDS)], self._owner)
        self._turn = turn if answer is LeaseAnswer.GRANTED else None
        return self._turn is not None

    def _forget_all_but(self, running: Sequence[RunningExperiment]) -> None:
        ids = {each.experiment_id for each in running}
        self._watched = {id_: each for id_, each in self._watched.items() if id_ in ids}
        self._left &= ids

    async def _watch(self, running: RunningExperiment) -> WatchedExperiment | None:
        """What is known of an experiment; None for one that this version does not understand."""
        experiment_id = running.experiment_id
        if experiment_id in self._left:
            return None
        watched = self._watched.get(experiment_id)
        if watched and watched.experiment.manifest.request_groups == running.groups:
            return watched
        try:
            experiment = await self._store.experiment(experiment_id)
        except StoreUnreadable as error:
            self._leave_to_newer(experiment_id, str(error))
            return None
        if experiment is None:
            return None
        if not experiment.understood:
            self._leave_to_newer(experiment_id, "a newer version has planned it")
            return None
        watched = self._watched[experiment_id] = WatchedExperiment(experiment, self._quiet)
        return watched

    def _leave_to_newer(self, experiment_id: str, reason: str) -> None:
        self._left.add(experiment_id)
        log.warning("not reconciled", correlation_id=experiment_id, reason=reason)

    async def _heal(self, running: RunningExperiment, watched: WatchedExperiment) -> None:
        if running.state is not ExperimentState.RESUMED:
            await self._healer.heal(running, watched, MOST_A_PASS)
            return
        await self._healer.reopen(watched.experiment)
        del self._watched[running.experiment_id]  # everything is given time anew


@asynccontextmanager
async def reconciling(reconciler: Reconciler) -> AsyncIterator[None]:
    """Reconcile while the context is open."""
    running = asyncio.create_task(reconciler.run(), name="reconciler")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await reconciler.leave()
