"""SQLite's engines: one writer, readers beside it, durable commits.

The engine begins transactions itself, a writer's with the write lock. The driver would begin one
only before the first write, and earlier reads could be stale.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event

from socratic_bench.adapters.stores.sql.sqlite.sessions import ThreadedEngine

LOCK_TIMEOUT_SECONDS = 30
"""Seconds that a transaction waits for a writer, in this process or another."""

READERS = 4
"""The number of reading connections."""

_RETRY_SECONDS = 0.05


def writing_engine(path: Path) -> ThreadedEngine:
    """Return an engine with one connection: the writers of this process take turns."""
    return ThreadedEngine(_writing(path), 1)


def reading_engine(path: Path) -> ThreadedEngine:
    """Return an engine whose connections read commits, never wait, and create no file."""
    engine = _engine(
        path,
        READERS,
        "BEGIN",
        "PRAGMA query_only = ON",
        # Where SQLite cannot see a writer, each transaction checks again.
        keep_open=not _is_in_read_only_folder(path),
    )

    def name_file(_dialect: object, _record: object, args: list[Any], options: Any) -> None:
        args[0] = f"{path.as_uri()}?{_reading_mode(path)}"
        options["uri"] = True

    event.listen(engine, "do_connect", name_file)
    return ThreadedEngine(engine, READERS)


def _reading_mode(path: Path) -> str:
    """Return SQLite's mode for reading a file.

    A reader of a write-ahead log takes part in its locks, which are in a file beside it. In a
    read-only folder without a log no process writes, so SQLite reads the file without locks.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    return "immutable=1" if _is_in_read_only_folder(path) and not has_log else "mode=rw"


def _is_in_read_only_folder(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def migrate(path: Path, work: Callable[[Connection], None]) -> None:
    """Do `work` in a transaction that begins with the only write lock. Blocks."""
    engine = _writing(path)
    try:
        with engine.begin() as connection:
            work(connection)
    finally:
        engine.dispose()


def create_file(path: Path) -> None:
    """Create the database file if it is missing, and give it a write-ahead log. Blocks.

    With that log, readers and the writer do not wait for each other. SQLite itself does not wait
    for another process that switches the log on, so this repeats the request.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while True:
            try:
                # D-024: three usual responses fit on a page; on one of 4096 bytes, only one.
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return


def _writing(path: Path) -> Engine:
    return _engine(
        path,
        1,
        "BEGIN IMMEDIATE",
        # D-024: NORMAL may undo the last commits, and with them paid responses.
        # FULL: a commit is on the disk, and survives a power cut, before the caller knows of it.
        "PRAGMA synchronous = FULL",
        "PRAGMA cache_size = -16384",
    )


def _engine(
    path: Path, connections: int, begin: str, *pragmas: str, keep_open: bool = True
) -> Engine:
    pool: dict[str, Any] = {"pool_size": connections, "max_overflow": 0}
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        **(pool if keep_open else {"poolclass": NullPool}),
        # A transaction is committed or rolled back before its connection is returned.
        pool_reset_on_return=None,
        # Parameters hold texts of models and students, which errors must not quote.
        hide_parameters=True,
        connect_args={
            "timeout": LOCK_TIMEOUT_SECONDS,
            "isolation_level": None,
            # One thread at a time uses a connection, but not always the same.
            "check_same_thread": False,
        },
    )

    def configure(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", start)
    return engine
