"""SQLite's engines: one writer, readers beside it, durable commits.

The engine begins transactions itself, a writer's with the write lock. The driver would begin one
only before the first write, and earlier reads could be stale.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy import URL, Connection, Engine, Executable, NullPool, create_engine, event

from socratic_bench.adapters.stores.sql.transactions import Insertion, Keys, Parameters, Row, Rows

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


class ThreadedSession:
    """A connection of a blocking engine, used in its threads."""

    def __init__(
        self, engine: Engine, threads: ThreadPoolExecutor, on_closed: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._on_closed = on_closed
        self._connection: Connection | None = None

    def execute(self, statement: Executable, parameters: Parameters | None) -> asyncio.Future[Rows]:
        return self._in_thread(lambda: self._execute(statement, parameters))

    def insert(
        self, insertion: Insertion, rows: Sequence[Row], others: Row
    ) -> asyncio.Future[Keys]:
        return self._in_thread(lambda: self._insert(insertion, rows, others))

    def rollback(self) -> asyncio.Future[None]:
        return _nothing() if self._connection is None else self._in_thread(self._rollback)

    def commit(self) -> asyncio.Future[None]:
        return _nothing() if self._connection is None else self._in_thread(self._commit)

    def close(self) -> asyncio.Future[None]:
        if self._connection is None:
            self._on_closed()
            return _nothing()
        closing = self._in_thread(self._close)
        closing.add_done_callback(lambda _: self._on_closed())
        return closing

    def _execute(self, statement: Executable, parameters: Parameters | None) -> Rows:
        result = self._connected().execute(statement, parameters)
        return result.all() if result.returns_rows else ()

    def _insert(self, insertion: Insertion, rows: Sequence[Row], others: Row) -> Keys:
        """Insert rows in the fast way for new ones; if some exist, insert again, returning keys."""
        if insertion.only_new is not None:
            # SQLAlchemy would compile each savepoint, and process each row by itself.
            execute = self._connected().exec_driver_sql
            execute("SAVEPOINT only_new")
            written = execute(insertion.only_new, list(rows)).rowcount
            if written < len(rows):
                execute("ROLLBACK TO only_new")
            execute("RELEASE only_new")
            if written == len(rows):
                return [[row[name] for name in insertion.key] for row in rows]
        return self._execute(insertion.statement, insertion.parameters(rows, **others))

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _rollback(self) -> None:
        if self._connection is not None:
            self._connection.rollback()

    def _commit(self) -> None:
        if self._connection is not None:
            self._connection.commit()
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _in_thread(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _nothing() -> asyncio.Future[None]:
    """Return a finished future."""
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


class ThreadedEngine:
    """A blocking engine, with a thread for each connection."""

    def __init__(self, engine: Engine, connections: int) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="sqlite")
        self._sessions = 0
        self._is_disposed = False
        self.connects = 0
        event.listen(engine, "connect", self._count)

    def session(self) -> ThreadedSession:
        self._sessions += 1
        return ThreadedSession(self._engine, self._threads, self._session_closed)

    def look_up(self, statement: Executable, parameters: Parameters | None) -> asyncio.Future[Rows]:
        def execute() -> Rows:
            with self._engine.connect() as connection:
                return connection.execute(statement, parameters).all()

        self._sessions += 1
        looking = asyncio.get_running_loop().run_in_executor(self._threads, execute)
        looking.add_done_callback(lambda _: self._session_closed())
        return looking

    async def dispose(self) -> None:
        """Close unused connections now, and the others with their sessions, with their threads."""
        self._is_disposed = True
        try:
            await asyncio.to_thread(self._engine.dispose)
        finally:
            self._end_unused()

    def _session_closed(self) -> None:
        self._sessions -= 1
        self._end_unused()

    def _end_unused(self) -> None:
        if self._is_disposed and not self._sessions:
            self._threads.shutdown(wait=False)

    def _count(self, _connection: object, _record: object) -> None:
        self.connects += 1


LOCK_TIMEOUT_SECONDS = 30
"""Seconds that a transaction waits for a writer, in this process or another."""

LOG_PAGES = 32
"""Pages in the write-ahead log from which a commit moves them into the file: some four answers."""

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
    mode = ""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while True:
            try:
                # D-024: three usual responses fit on a page; on one of 4096 bytes, only one.
                connection.execute("PRAGMA page_size = 8192")
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                break
    _warn_of_network(path, mode)


_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|fuse\.(sshfs|s3fs|rclone).*"
)
"""File systems that may lose SQLite's locks between machines, as /proc/mounts names them."""


def _warn_of_network(path: Path, mode: str, mounts: Path = Path("/proc/mounts")) -> None:
    """Log a warning for a file on a network file system, or one that gets no write-ahead log."""
    kind = _file_system_of(path, mounts)
    if mode != "wal" or _NETWORK.fullmatch(kind):
        log.warning(
            "SQLite needs a local disk: name a file there, or a store in PostgreSQL",
            database=str(path),
            file_system=kind or "unknown",
            journal=mode,
        )


def _file_system_of(path: Path, mounts: Path) -> str:
    """Return the kind of the file system that holds a file; empty where the system does not say."""
    found = (0, "")
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for fields in map(str.split, lines):
        folder = Path(fields[1].replace("\\040", " ")) if len(fields) > 2 else None
        if folder is not None and path.resolve().is_relative_to(folder):
            found = max(found, (len(folder.parts), fields[2]))
    return found[1]


def _writing(path: Path) -> Engine:
    return _engine(
        path,
        1,
        "BEGIN IMMEDIATE",
        # D-024: NORMAL may undo the last commits, and with them paid responses.
        # FULL: a commit is on the disk, and survives a power cut, before the caller knows of it.
        "PRAGMA synchronous = FULL",
        "PRAGMA cache_size = -16384",
        # A file that somebody copies without its log holds all but the last answers.
        f"PRAGMA wal_autocheckpoint = {LOG_PAGES}",
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
