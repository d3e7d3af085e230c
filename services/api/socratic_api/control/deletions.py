"""Deletions: an experiment disappears at once, and its rows after it.

The removal of many rows takes longer than a request, so it continues in a task of the application.
The curator removes what a task of an ended process left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog

from socratic_api.control.background import Background
from socratic_api.control.capabilities import Capabilities, Prepare
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import BrokerError
from socratic_bench.planning.plan import remove_requests, remove_rows
from socratic_bench.ports.stores.experiments import Experiments

REMOVED_WITHIN: Final = 2.0
"""Seconds that a request waits for the rows to be gone."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Deletion:
    """One deletion on its way."""

    experiment_id: str
    rows: int = 0
    """The rows removed so far."""

    done: bool = False


class Deletions:
    """Deletes experiments, each in a task of its own."""

    def __init__(self, store: Experiments, prepare: Prepare, capabilities: Capabilities) -> None:
        self._store = store
        self._prepare = prepare
        self._capabilities = capabilities
        self._running: dict[str, tuple[Deletion, asyncio.Task[None]]] = {}
        self._background = Background()

    async def delete(self, experiment_id: str, experiment: Experiment | None) -> Deletion:
        """Delete an experiment; None for one that is deleted, whose rows may remain.

        Returns once its rows are gone, or their removal takes long. Raises StoreError.
        """
        await self._prepare()
        if experiment is not None:
            await self._store.change_state(experiment_id, ExperimentState.DELETED)
        if experiment_id not in self._running:
            deletion = Deletion(experiment_id)
            work = self._remove(deletion, experiment)
            task = self._background.start(work, f"deletion of {experiment_id}")
            self._running[experiment_id] = deletion, task
            task.add_done_callback(lambda _: self._running.pop(experiment_id))
        deletion, task = self._running[experiment_id]
        await asyncio.wait({task}, timeout=REMOVED_WITHIN)
        if task.done():
            task.result()
        elif not self._capabilities.outlives_answers:
            await self._background.end(task)
        return deletion

    async def close(self) -> None:
        """End the removal of rows; the curator continues it."""
        await self._background.close()

    async def _remove(self, deletion: Deletion, experiment: Experiment | None) -> None:
        async for rows in remove_rows(self._store, deletion.experiment_id):
            deletion.rows += rows
        broker = self._capabilities.broker
        if experiment is not None and experiment.submitted and broker is not None:
            try:
                await remove_requests(broker, self._store, experiment)
            except BrokerError as error:
                # Runners drop such requests.
                log.warning("requests stay", reason=str(error))
        deletion.done = True
        log.info("deleted", correlation_id=deletion.experiment_id, rows=deletion.rows)
