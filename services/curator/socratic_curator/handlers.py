"""Folds scores and failures, and announces the changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import suppress
from datetime import datetime

from socratic_bench.consuming.outcomes import Handled, Outcome, Rejected, Work
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import ExperimentStopped
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import (
    AggregateUpdated,
    AggregateUpdatedData,
    ExperimentCompleted,
    ExperimentCompletedData,
    ResponseScored,
    RunFailed,
)
from socratic_bench.planning.plan import PlanStore, as_due, resume
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Progress
from socratic_curator.plan_check import PlanCheck

SOURCE = "socratic-curator"


class FactHandler:
    """Handles `response.scored` and `run.failed`: folds them and announces the experiment's
    progress.

    A redelivered fact changes no cell and is announced again. So the announcement that a crash
    prevented still goes out.
    """

    def __init__(self, store: PlanStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._plans = PlanCheck(store)

    async def __call__(
        self, batch: Sequence[Work[ResponseScored | RunFailed]]
    ) -> AsyncGenerator[Sequence[Outcome], None]:
        """Fold a batch in one transaction, then announce what it changed.

        Facts that no plan holds are rejected before.
        """
        reasons = await self._plans.reasons([work.event for work in batch])
        refused = [
            Rejected(work, reason)
            for work, reason in zip(batch, reasons, strict=True)
            if reason is not None
        ]
        if refused:
            yield refused
        batch = [work for work, reason in zip(batch, reasons, strict=True) if reason is None]
        if not batch:
            return
        events = [work.event for work in batch]
        cells = await self._store.fold(
            [event.data for event in events if isinstance(event, ResponseScored)],
            [event.data for event in events if isinstance(event, RunFailed)],
        )
        announcements = await self._announcements(cells)
        *others, last = batch
        yield [*(Handled(work) for work in others), Handled(last, announcements)]

    async def _announcements(self, cells: Sequence[Cell]) -> tuple[Event, ...]:
        touched: defaultdict[str, set[CellKey]] = defaultdict(set)
        for cell in cells:
            touched[cell.key.experiment_id].add(cell.key)
        announcements: list[Event] = []
        for experiment_id, keys in touched.items():
            announcements += await self._announce(experiment_id, keys)
        return tuple(announcements)

    async def _announce(self, experiment_id: str, touched: Collection[CellKey]) -> list[Event]:
        progress = await self._store.progress(experiment_id)
        now = self._clock.now()
        updated = AggregateUpdatedData(
            experiment_id=experiment_id,
            planned=progress.planned,
            done=progress.done,
            failed=progress.failed,
            models=tuple(sorted({key.model_id for key in touched})),
        )
        announcements: list[Event] = [AggregateUpdated.of(updated, source=SOURCE, time=now)]
        if not await self._may_complete(experiment_id, touched):
            return announcements
        stopped_after = None
        if progress.done < progress.planned:
            present = await self._present(experiment_id, progress.done)
            if present is None:
                return announcements
            if progress.done < present.manifest.planned_runs:
                return announcements + await self._requests(present)
            stopped_after = present.manifest.stopped_after
        completed_at = await self._store.complete(experiment_id, now, stopped_after)
        if completed_at is not None:
            progress = await self._store.progress(experiment_id)
            announcements.append(_completed(experiment_id, progress, completed_at))
        return announcements

    async def _present(self, experiment_id: str, done: int) -> Experiment | None:
        """Return an experiment with the repeats that are due; None: runs of one have not ended."""
        experiment = await self._plans.plan(experiment_id)
        if experiment is None or not experiment.understood:
            return None
        manifest = experiment.manifest
        if done < manifest.begun_repeats(done) * manifest.runs_of_a_round:
            return None
        return await as_due(experiment, self._store, self._clock.now())

    async def _requests(self, present: Experiment) -> list[Event]:
        """Return what requests the last repeat of an experiment."""
        requests: list[Event] = []

        async def keep(events: Sequence[Event]) -> None:
            requests.extend(events)

        last = present.runs(present.manifest.due_repeats)
        with suppress(ExperimentStopped):  # a later resumption requests them
            await resume(present, last, self._store, keep, clock=self._clock, source=SOURCE)
        return requests

    async def _may_complete(self, experiment_id: str, touched: Collection[CellKey]) -> bool:
        """Whether a touched cell is of the experiment's own profile: others complete nothing."""
        profiles = await self._store.scored_profiles([experiment_id])
        own = {names[0] for names in profiles.values()}
        return any(key.profile in own for key in touched)


def _completed(
    experiment_id: str, progress: Progress, completed_at: datetime
) -> ExperimentCompleted:
    """Return the announcement; it is equal each time."""
    data = ExperimentCompletedData(
        experiment_id=experiment_id, planned=progress.planned, failed=progress.failed
    )
    return ExperimentCompleted.of(data, source=SOURCE, time=completed_at)
