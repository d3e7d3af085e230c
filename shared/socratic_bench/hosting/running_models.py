"""Which groups the queue of the runner has: the models of running experiments."""

from __future__ import annotations

from dataclasses import dataclass

from socratic_bench.ports.stores.experiments import Experiments


@dataclass(frozen=True, slots=True)
class RunningModels:
    """The models of all experiments that are not complete."""

    store: Experiments

    async def __call__(self) -> frozenset[str]:
        """Raises StoreError."""
        running = await self.store.running()
        return frozenset[str]().union(*(each.model_ids for each in running))
