"""The experiments of requested runs, as the store has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import structlog

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import RETRIES
from socratic_bench.errors import StoreUnreadable
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_runner.last_uses import MOST_EXPERIMENTS, LastUses

log = structlog.get_logger(__name__)

FRESH = 30.0
"""Seconds before the runner reads an experiment again: its prices and limits may have changed."""


OPEN_FOR = 1.0
"""Seconds for which the runner takes an experiment to be open. A claim of a lease reveals a stop
in between."""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """An experiment that only a newer version can carry out faithfully."""

    reason: str


class ExperimentCache:
    """Reads experiments from the store, and keeps them while their runs come in."""

    def __init__(self, store: Experiments) -> None:
        self._store = store
        self._known: dict[str, tuple[Experiment | NotUnderstood, float]] = {}
        self._reading = asyncio.Lock()
        self._uses = LastUses[str](MOST_EXPERIMENTS)
        self._open: dict[str, float] = {}
        """Until when the runner takes each experiment to be open."""

    async def stopped(self, experiment_ids: Collection[str]) -> set[str]:
        """Return the experiments among these that are paused, cancelled or deleted now.

        The runner never caches a stop: new requests may follow a resume.
        """
        now = asyncio.get_running_loop().time()
        asked = [id_ for id_ in experiment_ids if self._open.get(id_, now) <= now]
        if not asked:
            return set()
        states = await self._store.states(asked)
        stopped = {id_ for id_, state in states.items() if not state.calls_may_begin}
        self._open = {id_: until for id_, until in self._open.items() if until > now}
        self._open |= dict.fromkeys(set(asked) - stopped, now + OPEN_FOR)
        return stopped

    async def named(
        self, groups: Mapping[str, AbstractSet[str]]
    ) -> Mapping[str, Experiment | NotUnderstood]:
        """Return the experiments among these that the store has.

        `groups` has the groups of the requests of each: a group that its plan does not have tells
        of a raised priority.
        """
        found: dict[str, Experiment | NotUnderstood] = {}
        for experiment_id, its_groups in groups.items():
            self._uses.note(experiment_id)
            if not self._is_fresh(experiment_id, its_groups):
                # Many batches begin at once, and one query serves them all.
                async with self._reading:
                    if not self._is_fresh(experiment_id, its_groups):
                        await self._refresh(experiment_id)
            # Another batch may drop this one while the next is read.
            if known := self._known.get(experiment_id):
                found[experiment_id] = known[0]
        return found

    def forget_idle(self, in_use: Callable[[], AbstractSet[ModelInHand]]) -> None:
        """Forget, now and then, experiments that were idle for long, and those beyond the most.

        Experiments of the models `in_use` stay.
        """
        if self._uses.look_is_due:
            for experiment_id in self._uses.take_idle({each.experiment_id for each in in_use()}):
                self._known.pop(experiment_id, None)

    def _is_fresh(self, experiment_id: str, groups: AbstractSet[str]) -> bool:
        experiment, read_at = self._known.get(experiment_id, (None, 0.0))
        if isinstance(experiment, Experiment):
            known = experiment.manifest.request_groups | {RETRIES}
            if not groups <= known:
                return False
        return experiment is not None and asyncio.get_running_loop().time() <= read_at + FRESH

    async def _refresh(self, experiment_id: str) -> None:
        """Read an experiment; an unchanged one stays the same object."""
        now = asyncio.get_running_loop().time()
        experiment = await self._read(experiment_id)
        if experiment is None:
            return
        known = self._known.get(experiment_id)
        if known is not None and known[0] == experiment:
            experiment = known[0]
        self._known[experiment_id] = (experiment, now)

    async def _read(self, experiment_id: str) -> Experiment | NotUnderstood | None:
        try:
            experiment = await self._store.experiment(experiment_id)
        except StoreUnreadable as error:
            reason = str(error)
        else:
            if experiment is None or experiment.understood:
                return experiment
            reason = f"experiment {experiment_id} was planned by a newer version"
        log.warning("runs are left to a newer version", correlation_id=experiment_id, reason=reason)
        return NotUnderstood(reason)
