"""The experiments whose runs come in, as the store has them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import structlog

from socratic_bench.domain.manifest import Experiment
from socratic_bench.errors import StoreUnreadable
from socratic_bench.ports.store import Store

log = structlog.get_logger(__name__)

FRESH = 30.0
"""Seconds until an experiment is read again: its prices and limits may have been changed."""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """An experiment that this version cannot carry out as it is meant; a newer one can."""

    reason: str


class Experiments:
    """Reads experiments from the store, and keeps them for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Experiment | NotUnderstood, float]] = {}

    async def named(
        self, experiment_ids: Collection[str]
    ) -> Mapping[str, Experiment | NotUnderstood]:
        """Those of these experiments that are in the store."""
        now = asyncio.get_running_loop().time()
        for experiment_id in experiment_ids:
            known = self._known.get(experiment_id)
            if known is None or known[1] + FRESH < now:
                experiment = await self._read(experiment_id)
                if experiment is not None:
                    self._known[experiment_id] = (experiment, now)
        return {id_: self._known[id_][0] for id_ in experiment_ids if id_ in self._known}

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
