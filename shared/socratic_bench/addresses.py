"""One address selects each adapter; its module is imported only then."""

from __future__ import annotations

from socratic_bench.errors import InvalidSettings
from socratic_bench.ports.store import Store


def open_store(address: str) -> Store:
    """The store at `address`, not yet prepared.

    `sqlite:///path` is a file, relative to the working folder; `sqlite:////path` an absolute one.
    Raises InvalidSettings for an address no adapter takes.
    """
    scheme = address.partition(":")[0]
    if scheme == "sqlite":
        from socratic_bench.adapters.sql.store import SqlStore  # noqa: PLC0415 - only when asked for

        return SqlStore.from_url(address)
    raise InvalidSettings(
        f"no store at {scheme or address!r}: the address must begin with sqlite:///"
    )
