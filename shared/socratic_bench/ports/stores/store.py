"""The store port: five roles in one place, and their common guarantees.

A service takes the roles that it uses, and `Store` only where it opens, prepares and closes one.
Several processes use one store at once, and every guarantee holds among all of them.

A guarantee covers one item: one response and its lease, one score and its cell, one limit. A method
with many items may use any number of transactions, unless it says otherwise. If it raises an error,
it may have served some items: the caller repeats the call with all of them, and no item counts
twice. A method that reads many items reads each as it was at some moment of the call, not all at
the same moment.

Every method raises StoreUnavailable while the store does not answer, StoreNotWritable while the
store is read-only, StoreBroken where a person must repair something, StoreRefused for an item that
the store can never hold, StoreUnreadable for an item of a newer version, and StoreError once
closed.
"""

from __future__ import annotations

from typing import Protocol

from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.ports.stores.limits import SharedLimits
from socratic_bench.ports.stores.responses import Responses


class Store(Experiments, Responses, Leases, SharedLimits, Aggregates, Protocol):
    """All roles of one store, and its life cycle."""

    async def prepare(self) -> None:
        """Bring the schema up to date. Of several processes at once, one does it."""
        ...

    async def check_readable(self) -> None:
        """Check that this version can read the store, without changing it.

        A caller that only reads calls it in place of `prepare`. Raises StoreBroken for a schema
        that is too old or too new for this version, and for an empty store.
        """
        ...

    async def ping(self) -> None:
        """Ask the store for an empty answer. Raises StoreUnavailable without one."""
        ...

    async def close(self) -> None:
        """Free the store's resources. A second call does nothing."""
        ...
