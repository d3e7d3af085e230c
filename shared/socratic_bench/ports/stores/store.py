"""The store port: five roles that are kept in one place, and what they promise together.

A service takes the roles that it uses, and `Store` only where it opens, prepares and closes one.
Several processes use one store at once, and every promise holds among all of them.

A promise is about one item: one response and its lease, one score and its cell, one limit. A method
that takes many items may serve them in as many transactions as it likes, unless it says otherwise.
If it raises an error, it may have served some of them: the caller repeats the call with all of
them, and no item counts twice. A method that reads many items reads each as it was at some moment
of the call, not all of them at the same moment.

Every method raises StoreUnavailable while the store does not answer, StoreNotWritable while it can
only be read, StoreBroken where a person has to repair something, StoreRefused for an item that it
can never hold, StoreUnreadable for an item of a newer version, and StoreError once it is closed.
"""

from __future__ import annotations

from typing import Protocol

from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.ports.stores.limits import SharedLimits
from socratic_bench.ports.stores.responses import Responses


class Store(Experiments, Responses, Leases, SharedLimits, Aggregates, Protocol):
    """All roles of one store, and its life."""

    async def prepare(self) -> None:
        """Bring the schema up to date, once however many processes do it at the same time."""
        ...

    async def check_readable(self) -> None:
        """Make sure that this version can read what is stored, and change nothing.

        Whoever only reads calls it in place of `prepare`. Raises StoreBroken where the schema is
        too old or too new for this version, or nothing was ever stored.
        """
        ...

    async def ping(self) -> None:
        """Ask the store for an answer of no size. Raises StoreUnavailable where none comes."""
        ...

    async def close(self) -> None:
        """Free what the store holds. Calling it twice does nothing."""
        ...
