"""Allows one embedded benchmark at a time on a database file.

Two at once would mistake each other's leases for their own. The lock is the operating system's:
it ends with the process, even after a kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from socratic_bench.errors import SocraticBenchError, StoreBroken


class StoreInUse(SocraticBenchError):
    """Another benchmark is running on this store."""


@contextmanager
def store_lock(database: Path | None) -> Iterator[None]:
    """Hold the lock of a database file; a store without a file needs none.

    Raises StoreInUse at once if another process holds the lock, StoreBroken if the lock cannot be
    taken.
    """
    if database is None:
        yield
        return
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        # The system frees this lock after a kill; a row would stay.
        lock = FileLock(f"{database}.lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise StoreInUse(
            f"another benchmark is running on {database}: wait for it, or name another store "
            "with --store"
        ) from None
    except OSError as error:
        raise StoreBroken(
            f"{database} cannot be used: {error.strerror}: {error.filename}; name another store "
            "with --store"
        ) from None
    try:
        yield
    finally:
        lock.release()
