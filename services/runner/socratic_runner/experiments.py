"""The experiments whose runs come in, as the store has them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from socratic_bench.domain.manifest import Experiment
from socratic_bench.ports.store import Store

FRESH = 30.0
"""Seconds until an experiment is read again: its prices and limits may have been changed."""


class Experiments:
    """Reads experiments from the store, and keeps them for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Experiment, float]] = {}

    async def named(self, experiment_ids: Collection[str]) -> Mapping[str, Experiment]:
        """Those of these experiments that are in the store."""
        now = asyncio.get_running_loop().time()
        for experiment_id in experiment_ids:
            known = self._known.get(experiment_id)
            if known is None or known[1] + FRESH < now:
                experiment = await self._store.experiment(experiment_id)
                if experiment is not None:
                    self._known[experiment_id] = (experiment, now)
        return {id_: self._known[id_][0] for id_ in experiment_ids if id_ in self._known}
