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
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final, Literal
from uuid import uuid4

import structlog

from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.run import batches
from socratic_bench.errors import BrokerError, ExperimentStopped, StoreError, StoreUnreadable
from socratic_bench.events.codec import Event
from socratic_bench.events.experiment_completed import ExperimentCompleted, ExperimentCompletedData
from socratic_bench.events.message import to_message
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_failed import RunFailed
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.planning.expiry import Expiry
from socratic_bench.planning.plan import PlanCounts, PlanStore, publish_plan
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import RunningExperiment
from socratic_bench.ports.stores.leases import Claim, LeaseAnswer, LeaseKey

log = structlog.get_logger(__name__)

SOURCE: Final = "socratic-reconciler"

LOOK_SECONDS: Final = 10.0
"""Seconds between two passes."""

LOOKS_WHILE_IDLE: Final = 8
"""An experiment in which nothing has changed for longer than the quiet time is looked at again
after an eighth of what it is longer."""

LONGEST_LOOK_SECONDS: Final = 300.0
"""However long nothing changed, an experiment is looked at so often."""

TURN_SECONDS: Final = 45.0
"""For how long a process is the one that reconciles, after each pass."""

QUIET_SECONDS: Final = 120.0
"""Nothing may have changed for so long before anything is sent again."""

LONGEST_QUIET_SECONDS: Final = 3_600.0
"""The time doubles whenever something was sent again; it grows no longer than this."""

MOST_A_PASS: Final = 1_000
"""Runs, responses and failures that are sent again in one pass, at most, of each."""

BATCH: Final = 500

LEAVE_SECONDS: Final = 3.0
"""How long the store may take to note that another process may go on."""

SentAgain = Literal["runs", "responses", "failures", "plans"]

_SCORING: Final = (JUDGE_RESPONSE_RECORDED.name, CURATOR_RESPONSE_SCORED.name)
_FAILING: Final = (CURATOR_RUN_FAILED.name,)


class _Watched:
    """Something that should come to its end by itself."""

    def __init__(self, quiet: float, first: float) -> None:
        """It must not have changed for `first` seconds before something is sent again, and for
        `quiet` seconds, then twice as long, and so on, before it is sent another time.
        """
        self._quiet = quiet
        self._first = first
        self._seen: object = None
        self._since = 0.0
        self._wait = first

    def is_stuck(self, seen: object, now: float) -> bool:
        """Whether it has looked like this for so long that something has to be done."""
        if seen != self._seen:
            self._seen, self._since, self._wait = seen, now, self._first
        return now - self._since >= self._wait

    def touch(self, now: float) -> None:
        """Somebody has it in hand."""
        self._since = now

    def sent_again(self, now: float) -> None:
        """Wait longer before it is sent another time."""
        self._since = now
        self._wait = min(max(2 * self._wait, self._quiet), LONGEST_QUIET_SECONDS)


class _Known:
    """What is remembered of a running experiment from pass to pass."""

    def __init__(self, experiment: Experiment, quiet: float) -> None:
        self.experiment = experiment
        self._quiet = quiet
        self._row: RunningExperiment | None = None
        self._ended: Mapping[str, int] | None = None
        self._changed_at = self._looked_at = 0.0
        self.progress = _Watched(quiet, quiet)
        self.plan = _Watched(quiet, quiet)
        self.models = {model.id: _Watched(quiet, quiet) for model in experiment.manifest.models}
        # Looked for only where there was no progress for long.
        self.responses = _Watched(quiet, 0.0)
        self.failures = _Watched(quiet, 0.0)

    @property
    def runs_of_a_model(self) -> int:
        manifest = self.experiment.manifest
        return manifest.planned_runs // len(manifest.models)

    def is_due(self, row: RunningExperiment, now: float) -> bool:
        """Whether to look at it now: the longer nothing has changed, the less often."""
        if row != self._row:
            self._row, self._changed_at = row, now
            return True
        idle = now - self._changed_at - self._quiet
        return now - self._looked_at >= min(idle / LOOKS_WHILE_IDLE, LONGEST_LOOK_SECONDS)

    def looked(self, ended: Mapping[str, int], now: float) -> None:
        """So many runs of each model have ended now."""
        self._looked_at = now
        if ended != self._ended:
            self._ended, self._changed_at = ended, now


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
        self._broker = broker
        self._clock = clock
        self._owner = owner
        self._monotonic = monotonic
        self._quiet = quiet
        self._known: dict[str, _Known] = {}
        self._left: set[str] = set()
        """Experiments that are left to a newer version, of which the log was told."""
        self._turn: LeaseKey | None = None
        self._expiry = Expiry(store, clock, delete_after, monotonic)
        self.sent_again: Counter[SentAgain] = Counter()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.reconcile()
            except (StoreError, BrokerError) as error:
                log.info("cannot reconcile now", reason=str(error))
            except Exception:
                # Nobody else would notice that experiments are healed no longer.
                log.exception("reconciler failed")
            await asyncio.sleep(LOOK_SECONDS)

    async def reconcile(self) -> None:
        """One pass, if it is this process's turn. Raises StoreError and BrokerError."""
        if not await self._is_mine():
            self._known.clear()
            return
        running = [each for each in await self._store.running() if each.state.calls_may_begin]
        ids = {each.experiment_id for each in running}
        self._known = {id_: known for id_, known in self._known.items() if id_ in ids}
        self._left &= ids
        left = MOST_A_PASS
        for each in running:
            known = await self._know(each)
            if known is None or not known.is_due(each, self._monotonic()):
                continue
            try:
                left -= await self._heal(each, known, left)
            except ExperimentStopped:
                continue  # just now
            except (StoreError, BrokerError):
                raise
            except Exception:
                # A fault that one experiment shows must not keep the others from being healed.
                log.exception("cannot reconcile", correlation_id=each.experiment_id)
        await self._expiry.expire()

    async def leave(self) -> None:
        """Let another process go on at once."""
        if self._turn is not None:
            await self._store.give_back_leases([self._turn])

    async def _is_mine(self) -> bool:
        turn = LeaseKey("reconciler", "reconciler", 1, uuid4().hex)
        [answer] = await self._store.take_leases([Claim(turn, TURN_SECONDS)], self._owner)
        self._turn = turn if answer is LeaseAnswer.GRANTED else None
        return self._turn is not None

    async def _know(self, running: RunningExperiment) -> _Known | None:
        """What is known of an experiment; None for one that this version does not understand."""
        experiment_id = running.experiment_id
        if experiment_id in self._known or experiment_id in self._left:
            return self._known.get(experiment_id)
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
        known = self._known[experiment_id] = _Known(experiment, self._quiet)
        return known

    def _leave_to_newer(self, experiment_id: str, reason: str) -> None:
        self._left.add(experiment_id)
        log.warning("not reconciled", correlation_id=experiment_id, reason=reason)

    async def _heal(self, running: RunningExperiment, known: _Known, most: int) -> int:
        """Send again what is lost of one experiment; returns how many runs."""
        if running.state is ExperimentState.RESUMED:
            await self._resume(running.experiment_id)
            return 0
        ended = dict(await self._store.ended_runs(running.experiment_id))
        known.looked(ended, self._monotonic())
        if known.progress.is_stuck(ended, self._monotonic()):
            await self._resend_responses(known)
            await self._resend_failures(known)
            known.progress.sent_again(self._monotonic())
        missing = {
            model: known.runs_of_a_model - ended.get(model, 0)
            for model in sorted(running.model_ids)
            if ended.get(model, 0) < known.runs_of_a_model
        }
        if not missing:
            await self._complete(running.experiment_id)
            return 0
        if running.exhausted:
            return 0
        in_hand = await self._store.models_in_hand(running.experiment_id)
        if running.planned_at is None:
            await self._resume_plan(known, missing, in_hand)
            return 0
        sent = 0
        for model, runs in missing.items():
            watched = known.models[model]
            if sent < most and await self._is_lost(watched, model, runs, in_hand):
                sent += await self._request(known.experiment, model, most - sent)
                watched.sent_again(self._monotonic())
        return sent

    async def _is_lost(
        self, watched: _Watched, model: str, runs: int, in_hand: Collection[str]
    ) -> bool:
        """Whether runs of a model are missing, and nobody has had any in hand for long."""
        now = self._monotonic()
        if model in in_hand or await self._waits(RUNNER_RUN_REQUESTED.name, model):
            watched.touch(now)
        return watched.is_stuck(runs, now)

    async def _waits(self, queue: str, group: str | None = None) -> bool:
        """Whether the broker holds anything. One that cannot tell is given time by the back-off."""
        return bool(await self._broker.depth(queue, group))

    async def _request(self, experiment: Experiment, model: str, most: int) -> int:
        """Request runs of a model that are not done."""
        sent = 0
        for batch in batches((run for run in experiment.runs() if run.model_id == model), BATCH):
            ids = [run.run_id for run in batch]
            done = await self._store.done_runs(experiment.experiment_id, ids)
            due = [run for run in batch if run.run_id not in done][: most - sent]
            now = self._clock.now()
            await self._publish([RunRequested.of(run, source=SOURCE, time=now) for run in due])
            sent += len(due)
            if sent >= most:
                break
        self._tell("runs", sent, experiment.experiment_id, model=model)
        return sent

    async def _resume(self, experiment_id: str) -> None:
        """Request again, at once, what is not done: requests were settled while it was stopped."""
        counts = await self._publish_plan(experiment_id)
        await self._store.change_state(experiment_id, ExperimentState.OPEN)
        del self._known[experiment_id]  # everything is given time anew
        log.info("resumed", correlation_id=experiment_id, runs=counts.requested)

    async def _publish_plan(self, experiment_id: str) -> PlanCounts:
        """Publish a plan from its start, of the experiment as it is stored now."""
        experiment = await self._store.experiment(experiment_id)
        if experiment is None:
            raise ExperimentStopped(f"experiment {experiment_id} was deleted")
        return await publish_plan(
            experiment, self._store, self._publish, clock=self._clock, source=SOURCE
        )

    async def _resume_plan(
        self, known: _Known, missing: Mapping[str, int], in_hand: Collection[str]
    ) -> None:
        """Publish a plan from its start that somebody did not publish to its end."""
        now = self._monotonic()
        if in_hand or await self._waits(RUNNER_RUN_REQUESTED.name):
            known.plan.touch(now)
        if known.plan.is_stuck(dict(missing), now):
            experiment_id = known.experiment.experiment_id
            counts = await self._publish_plan(experiment_id)
            known.plan.sent_again(now)
            self._tell("plans", 1, experiment_id, runs=counts.requested)

    async def _resend_responses(self, known: _Known) -> None:
        """Publish responses again that have waited for their score for long."""
        experiment_id = known.experiment.experiment_id
        unscored = await self._store.unscored_responses(experiment_id, MOST_A_PASS)
        ids = frozenset((each.run.run_id, each.turn) for each in unscored)
        if await self._is_stuck(known.responses, ids, _SCORING):
            await self._publish([ResponseRecorded.of(each, source=SOURCE) for each in unscored])
            self._tell("responses", len(unscored), experiment_id)

    async def _resend_failures(self, known: _Known) -> None:
        """Publish failures again that the runner stored and no curator folded."""
        experiment_id, now = known.experiment.experiment_id, self._clock.now()
        failures = await self._store.unfolded_failures(experiment_id, MOST_A_PASS)
        ids = frozenset(each.run.run_id for each in failures)
        if await self._is_stuck(known.failures, ids, _FAILING):
            await self._publish([RunFailed.of(each, source=SOURCE, time=now) for each in failures])
            self._tell("failures", len(failures), experiment_id)

    async def _is_stuck(
        self, watched: _Watched, ids: frozenset[object], queues: Sequence[str]
    ) -> bool:
        """Whether the same things have waited for long, though the broker holds nothing."""
        now = self._monotonic()
        if not watched.is_stuck(ids, now) or not ids:
            return False
        for queue in queues:
            if await self._waits(queue):
                watched.touch(now)
                return False
        watched.sent_again(now)
        return True

    async def _complete(self, experiment_id: str) -> None:
        """Mark an experiment as complete whose last fact was folded without that."""
        completed_at = await self._store.complete(experiment_id, self._clock.now())
        if completed_at is None:
            return
        progress = await self._store.progress(experiment_id)
        data = ExperimentCompletedData(
            experiment_id=experiment_id, planned=progress.planned, failed=progress.failed
        )
        await self._publish([ExperimentCompleted.of(data, source=SOURCE, time=completed_at)])

    async def _publish(self, events: Sequence[Event]) -> None:
        if events:
            await self._broker.publish([to_message(event) for event in events])

    def _tell(self, what: SentAgain, count: int, experiment_id: str, **more: object) -> None:
        self.sent_again[what] += count
        log.warning("sent again", what=what, count=count, correlation_id=experiment_id, **more)


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
