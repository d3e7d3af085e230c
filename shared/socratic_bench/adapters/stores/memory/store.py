"""The store in the memory of the process: the executable specification of the store port.

The rules are those of the domain (`leasing`, `fair_share`, `pause`, `aggregates.cell.Fold`,
`experiment.state`); the roles say which facts a rule is asked about, and what its answer changes.
Where a sentence of the port leaves a question open, this store has the answer: the contract suite
compares every other store with it.
"""

from __future__ import annotations

from socratic_bench.adapters.stores.memory.experiments import MemoryExperiments
from socratic_bench.adapters.stores.memory.facts import MemoryAggregates, MemoryResponses
from socratic_bench.adapters.stores.memory.leases import MemoryLeases, MemorySharedLimits
from socratic_bench.ports.stores.store import Store


class MemoryStore(
    MemoryExperiments, MemoryResponses, MemoryLeases, MemorySharedLimits, MemoryAggregates, Store
):
    """A Store whose facts end with the process, and which says what every other store does.

    Stores with one `StoreState` share it, within one event loop. A method reads and changes all its
    items in one step.
    """

    async def prepare(self) -> None:
        """Do nothing: the state has no schema."""
        await self.ping()

    async def check_readable(self) -> None:
        """Everything can be read: the state has no schema."""
        await self.ping()

    async def ping(self) -> None:
        async with self._state_alone():
            pass

    async def close(self) -> None:
        self._closed = True
        await self._idle.wait()
