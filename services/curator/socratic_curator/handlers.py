"""Folds scores and failures, and announces the changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Sequence
from datetime import datetime
from typing import Protocol

from socratic_bench.consuming.outcomes import Handled, Outcome, Rejected, Work
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import (
    AggregateUpdated,
    AggregateUpdatedData,
    ExperimentCompleted,
    ExperimentCompletedData,
    ResponseScored,
    RunFailed,
)
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments, Progress
from socratic_curator.plan_check import PlanCheck

SOURCE = "socratic-curator"


class CurationStore(Experiments, Aggregates, Protocol):
    """The roles of the store that facts are folded into."""


class FactHandler:
    """Handles `response.scored` and `run.failed`: folds them and announces the experiment's
    progress.

    A redelivered fact changes no cell and is announced again. So the announcement that a crash
    prevented still goes out.
    """

    def __init__(self, store: CurationStore, clock: Clock) -> None:
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
        if progress.done >= progress.planned and await self._may_complete(experiment_id, touched):
            completed_at = await self._store.complete(experiment_id, now)
            if completed_at is not None:
                announcements.append(_completed(experiment_id, progress, completed_at))
        return announcements

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
