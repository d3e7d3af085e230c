"""SQLite as the SQL store needs it: one writer, readers beside it, durable commits.

The driver is kept out of transactions: it would begin one only before the first write, and what was
read until then could be stale. The engine begins them itself, a writer's with the write lock.
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

from socratic_bench.adapters.sql.sqlite.sessions import ThreadedEngine

LOCK_TIMEOUT_SECONDS = 30
"""How long a transaction waits for a writer, in this process or another, before it gives up."""

READERS = 4
"""How many may read at a time."""

_RETRY_SECONDS = 0.05


def writing_engine(path: Path) -> ThreadedEngine:
    """An engine with one connection: the writers of this process take turns."""
    return ThreadedEngine(_writing(path), 1)


def reading_engine(path: Path) -> ThreadedEngine:
    """An engine whose connections see what is committed, wait for no writer, and make no file."""
    engine = _engine(
        path,
        READERS,
        "BEGIN",
        "PRAGMA query_only = ON",
        # Whether a writer is at work is asked anew for each transaction where SQLite cannot tell.
        keep_open=not _is_in_read_only_folder(path),
    )

    def name_file(_dialect: object, _record: object, args: list[Any], options: Any) -> None:
        args[0] = f"{path.as_uri()}?{_reading_mode(path)}"
        options["uri"] = True

    event.listen(engine, "do_connect", name_file)
    return ThreadedEngine(engine, READERS)


def _reading_mode(path: Path) -> str:
    """How SQLite opens a file to read it.

    A reader of a write-ahead log takes part in its locks, which are in a file beside it. Where the
    folder takes no file and there is no log, nobody writes: the file is read without locks.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    return "immutable=1" if _is_in_read_only_folder(path) and not has_log else "mode=rw"


def _is_in_read_only_folder(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def migrate(path: Path, work: Callable[[Connection], None]) -> None:
    """Do `work` in a transaction that begins with the write lock, of which there is one. Blocks."""
    engine = _writing(path)
    try:
        with engine.begin() as connection:
            work(connection)
    finally:
        engine.dispose()


def create_file(path: Path) -> None:
    """Make sure that the database file is there and has a write-ahead log. Blocks.

    With that log readers and the writer do not wait for each other. SQLite itself does not wait
    for another process that is just switching the log on, so it is asked again.
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
        # FULL: a commit is on the disk, and survives a power cut, before anybody hears of it.
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
        # They are what models and students said: nothing for an error message.
        hide_parameters=True,
        connect_args={
            "timeout": LOCK_TIMEOUT_SECONDS,
            "isolation_level": None,
            # It is used by one thread at a time, but not always by the same.
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
