"""Healing one experiment: what is lost of it is sent again, and what is done of it is completed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final, Literal

import structlog

from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.provider_batch import ProviderBatch
from socratic_bench.domain.run import Run, batches, request_group
from socratic_bench.errors import MessageTooLarge
from socratic_bench.events.codec import Event, to_message
from socratic_bench.events.event_types import (
    ExperimentCompleted,
    ExperimentCompletedData,
    ResponseRecorded,
    RunFailed,
    RunRequested,
)
from socratic_bench.planning.plan import PlanCounts, PlanStore, as_due, resume
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import RunningExperiment
from socratic_curator.reconciling.watched import (
    Watched,
    WatchedExperiment,
    WatchedModel,
)

log = structlog.get_logger(__name__)

SOURCE: Final = "socratic-reconciler"

FACTS_AT_ONCE: Final = 1_000
"""Responses that the healer sends again at once, at most; so many failures, too."""

LONGEST_BATCH: Final = timedelta(hours=26)
"""A provider ends a batch within a day; then its runs have some time."""

BATCH: Final = 500
"""Lost runs that the healer looks up at once."""

LOST: Final = (
    "nobody has them in hand, and no queue holds them: look for a policy of the broker with "
    "message-ttl, max-length, expires or delivery-limit, for a purge, or for lost data"
)
PLAN_CUT_SHORT: Final = "the plan was not requested to its end"

SentAgain = Literal["runs", "responses", "failures", "plans"]

_SCORING: Final = (JUDGE_RESPONSE_RECORDED.name, CURATOR_RESPONSE_SCORED.name)
_FAILING: Final = (CURATOR_RUN_FAILED.name,)


@dataclass(frozen=True, slots=True)
class Healer:
    """Sends again what is lost of experiments. All of it is idempotent."""

    store: PlanStore
    broker: Broker
    clock: Clock
    monotonic: Callable[[], float] = time.monotonic
    sent_again: Counter[SentAgain] = field(default_factory=Counter)
    """How much of each kind it sent."""

    async def heal(self, running: RunningExperiment, watched: WatchedExperiment, most: int) -> None:
        """Send again what is lost, at most so many runs; `watched` knows whether there are more."""
        watched.has_more = False
        ended = dict(await self.store.ended_runs(running.experiment_id))
        watched.looked(ended, self.monotonic())
        if watched.progress.is_stuck(ended, self.monotonic()):
            if watched.experiment.manifest.use_llm_exploratory is None:
                await self._resend_responses(watched)
            elif not running.exhausted:
                await self._request_unscored(watched)
            await self._resend_failures(watched)
            watched.progress.sent_again(self.monotonic())
        present = await as_due(watched.experiment, self.store, self.clock.now())
        missing = watched.missing(ended, present.manifest)
        if not missing:
            await self._complete(running.experiment_id, present.manifest.stopped_after)
            return
        if running.exhausted:
            return
        in_hand = {
            *await self.store.models_in_hand(running.experiment_id),
            *await self._in_batches(watched.experiment),
        }
        if running.planned_at is None:
            await self._complete_plan(watched, missing, in_hand)
            return
        for model, runs in missing.items():
            lost = watched.models[model]
            if lost.looked_up or await self._is_lost(present, lost, model, runs, in_hand):
                if most <= 0:
                    watched.has_more = True
                    break
                most -= await self._request_lost(present, model, lost, most)
                watched.has_more = bool(lost.looked_up)

    async def reopen(self, experiment: Experiment) -> None:
        """Request at once what is not done of a resumed experiment.

        The runners settled its requests while it was stopped.
        """
        counts = await self._resume(experiment, None)
        await self.store.change_state(experiment.experiment_id, ExperimentState.OPEN)
        log.info("resumed", correlation_id=experiment.experiment_id, runs=counts.requested)

    async def _resume(self, experiment: Experiment, runs: Iterable[Run] | None) -> PlanCounts:
        return await resume(
            experiment, runs, self.store, self._publish, clock=self.clock, source=SOURCE
        )

    async def _complete_plan(
        self, watched: WatchedExperiment, missing: Mapping[str, int], in_hand: Collection[str]
    ) -> None:
        """Request the runs of a plan from its start that somebody did not request to its end."""
        now = self.monotonic()
        if in_hand or await self._waits(RUNNER_RUN_REQUESTED.name):
            watched.plan.touch(now)
        if watched.plan.is_stuck(missing, now):
            experiment = watched.experiment
            counts = await self._resume(experiment, None)
            watched.plan.sent_again(now)
            self._tell("plans", 1, experiment.experiment_id, runs=counts.requested)

    async def _in_batches(self, experiment: Experiment) -> set[str]:
        """Return the models with turns in batches that may not have ended.

        A broker does not count all messages that come again after a delay.
        """
        if not experiment.manifest.has_batches:
            return set()
        turns = await self.store.waiting_turns(experiment.experiment_id)
        found = {ProviderBatch.of_owner(owner) for owner in {each.batch for each in turns}}
        since = self.clock.now() - LONGEST_BATCH
        return {each.model_id for each in found if each.begun_at > since}

    async def _is_lost(
        self,
        experiment: Experiment,
        watched: Watched,
        model: str,
        runs: int,
        in_hand: Collection[str],
    ) -> bool:
        """Whether runs of a model are missing, and nobody has had any in hand for long."""
        now = self.monotonic()
        if model in in_hand:
            watched.touch(now)
        elif await self._waits_for_runner(experiment, model):
            watched.waits(now)
        return watched.is_stuck(runs, now)

    async def _request_lost(
        self, experiment: Experiment, model: str, lost: WatchedModel, most: int
    ) -> int:
        """Request runs of a model that are not done, `most` at most; returns how many."""
        sent = 0
        runs = (run for run in experiment.runs() if run.model_id == model)
        for some in batches(islice(runs, lost.looked_up, None), BATCH):
            done = await self.store.done_runs(
                experiment.experiment_id, [run.run_id for run in some]
            )
            missing = [run for run in some if run.run_id not in done]
            if due := missing[: most - sent]:
                counts = await self._resume(experiment, due)
                sent += counts.requested + counts.answered
            left = missing[len(due) :]
            lost.looked_up += some.index(left[0]) if left else len(some)
            if left:
                break
        else:
            lost.looked_up = 0
            lost.sent_again(self.monotonic())
            if await self._waits_for_runner(experiment, model):
                lost.waits(self.monotonic())
        self._tell("runs", sent, experiment.experiment_id, model=model)
        return sent

    async def _resend_responses(self, watched: WatchedExperiment) -> None:
        """Publish responses again that have waited for their score for long."""
        experiment_id = watched.experiment.experiment_id
        unscored = await self.store.unscored_responses(experiment_id, FACTS_AT_ONCE)
        ids = frozenset((each.run.run_id, each.turn) for each in unscored)
        if await self._is_stuck(watched.responses, ids, _SCORING):
            await self._publish([ResponseRecorded.of(each, source=SOURCE) for each in unscored])
            self._tell("responses", len(unscored), experiment_id)

    async def _request_unscored(self, watched: WatchedExperiment) -> None:
        """Request the runs of unscored responses: the runner publishes them with their gradings."""
        experiment_id, now = watched.experiment.experiment_id, self.clock.now()
        in_hand = await self.store.models_in_hand(experiment_id)
        if in_hand or await self._in_batches(watched.experiment):
            return  # a grader may be slow
        unscored = await self.store.unscored_responses(experiment_id, FACTS_AT_ONCE)
        ids = frozenset((each.run.run_id, each.turn) for each in unscored)
        if await self._is_stuck(watched.responses, ids, (RUNNER_RUN_REQUESTED.name, *_SCORING)):
            runs = {each.run.run_id: each.run for each in unscored}
            priority = watched.experiment.manifest.priority
            await self._publish(
                [
                    RunRequested.of(run, source=SOURCE, time=now, priority=priority)
                    for run in runs.values()
                ]
            )
            self._tell("runs", len(runs), experiment_id)

    async def _resend_failures(self, watched: WatchedExperiment) -> None:
        """Publish failures again that the runner stored and no curator folded."""
        experiment_id, now = watched.experiment.experiment_id, self.clock.now()
        failures = await self.store.unfolded_failures(experiment_id, FACTS_AT_ONCE)
        ids = frozenset(each.run.run_id for each in failures)
        if await self._is_stuck(watched.failures, ids, _FAILING):
            await self._publish([RunFailed.of(each, source=SOURCE, time=now) for each in failures])
            self._tell("failures", len(failures), experiment_id)

    async def _is_stuck(
        self, watched: Watched, ids: frozenset[object], queues: Sequence[str]
    ) -> bool:
        """Whether the same facts have waited for long, though the broker holds nothing."""
        now = self.monotonic()
        if not watched.is_stuck(ids, now) or not ids:
            return False
        for queue in queues:
            if await self._waits(queue):
                watched.touch(now)
                return False
        watched.sent_again(now)
        return True

    async def _complete(self, experiment_id: str, stopped_after: int | None) -> None:
        """Mark an experiment as complete whose last fact was folded without that."""
        completed_at = await self.store.complete(experiment_id, self.clock.now(), stopped_after)
        if completed_at is None:
            return
        progress = await self.store.progress(experiment_id)
        data = ExperimentCompletedData(
            experiment_id=experiment_id, planned=progress.planned, failed=progress.failed
        )
        await self._publish([ExperimentCompleted.of(data, source=SOURCE, time=completed_at)])

    async def _waits(self, queue: str, group: str | None = None) -> bool:
        """Whether the broker holds anything. One that cannot tell is given time by the back-off."""
        return bool(await self.broker.depth(queue, group))

    async def _waits_for_runner(self, experiment: Experiment, model: str) -> bool:
        """Whether the broker holds requests of a model, of this experiment or another.

        Requests from before a raise of the priority do not count: behind those of others, they may
        wait for hours.
        """
        group = request_group(model, experiment.manifest.priority)
        return await self._waits(RUNNER_RUN_REQUESTED.name, group)

    async def _publish(self, events: Sequence[Event]) -> None:
        if not events:
            return
        try:
            await self.broker.publish([to_message(event) for event in events])
        except MessageTooLarge as error:
            log.warning("message kept apart", reason=str(error))

    def _tell(self, what: SentAgain, count: int, experiment_id: str, **more: object) -> None:
        self.sent_again[what] += count
        log.warning(
            "sent again",
            what=what,
            count=count,
            correlation_id=experiment_id,
            reason=PLAN_CUT_SHORT if what == "plans" else LOST,
            **more,
        )
