"""The groups of the runner's queue: the models of running experiments."""

from __future__ import annotations

from dataclasses import dataclass

from socratic_bench.ports.stores.experiments import Experiments


@dataclass(frozen=True, slots=True)
class RunningModels:
    """Lists the models of all incomplete experiments."""

    store: Experiments

    async def __call__(self) -> frozenset[str]:
        """Return the models' ids. Raises StoreError."""
        running = await self.store.running()
        return frozenset[str]().union(*(each.model_ids for each in running))
