"""PostgreSQL's errors, as sentences with the place and the remedy.

The server's own codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy.exc import DBAPIError

from socratic_bench.errors import (
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)

ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""The driver's errors."""

_AGAIN = "try again later"
_RESTARTING = f"the server is shutting down or starting up; {_AGAIN}"
_LOST = f"the connection was lost; {_AGAIN}"
_TOO_MANY_CONNECTIONS = (
    f"the server takes no more connections; {_AGAIN}, or raise its max_connections"
)
_CONFLICT = f"it conflicted with another transaction; {_AGAIN}"
_CREDENTIALS = "it refuses user and password; check those in the store's address"

POOLED = (
    "a pooler in front of the server, such as pgbouncer or a hosted one, shares sessions between "
    "clients; give the server's own address, or set pool_mode = session"
)

_NO_MATCHING_SERVER = (
    "no server in the address matches its target_session_attrs; unless a fail-over is under way, "
    "give the address of one that does"
)

_NOT_WRITABLE = {
    "25006": "it is read-only; unless a fail-over is under way, give the address of a writable "
    "server",
    "28P01": _CREDENTIALS,
    "53100": "the server's disk is full. Everything stored before is safe; free some space",
    "58": "the server cannot read or write its files. Everything stored before is safe; check its "
    "disk and its log",
}
"""By code, or by the first two characters of codes, their class."""

_UNAVAILABLE = {
    "08": _LOST,
    "08P01": "the server, or a pooler such as pgbouncer in front of it, refuses a part of the "
    "connection; check the parameters of the address",
    "25P03": f"the server ended a transaction that was idle for too long; {_AGAIN}",
    "40": _CONFLICT,
    "53": f"the server lacks resources; {_AGAIN}",
    "53200": f"the server has no memory left; {_AGAIN}",
    "53300": _TOO_MANY_CONNECTIONS,
    "55006": f"another user has exclusive use of the database; {_AGAIN}",
    "55P03": f"another transaction kept its lock for too long; {_AGAIN}",
    "57014": f"the server ended a statement that took too long; {_AGAIN}",
    "57P01": _RESTARTING,
    "57P02": _RESTARTING,
    "57P03": _RESTARTING,
    "57P05": _LOST,
}

_REFUSED = {"22": "it cannot hold a given value"}

_BROKEN = {
    "26000": POOLED,
    "28": _CREDENTIALS,
    "3D000": "the database is missing; check its name in the store's address",
    "42704": "it does not know a parameter of the store's address; remove it there",
    "42P05": POOLED,
    "42501": "this user lacks a right; grant it, or use the owner of the database",
    "42P01": "the store is empty",
    "57P04": "the database was dropped",
    "XX001": "its data is damaged; restore it from a copy",
    "XX002": "an index of it is damaged; rebuild that with REINDEX",
}

_SENTENCES: Mapping[type[StoreError], Mapping[str, str]] = {
    StoreNotWritable: _NOT_WRITABLE,
    StoreUnavailable: _UNAVAILABLE,
    StoreRefused: _REFUSED,
    StoreBroken: _BROKEN,
}


def explain(error: Exception, name: str) -> StoreError:
    """Return this project's error for `error` of the database `name`."""
    cause: BaseException | None = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig.__cause__ or error.orig  # the driver's error, behind SQLAlchemy's
    if isinstance(cause, OSError):
        return _explain_connecting(cause, name)
    if isinstance(cause, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return _explain_driver(cause, name)
    code = getattr(cause, "sqlstate", None) or ""
    # Without the details on further lines, which may hold the values of a row.
    said = f"PostgreSQL says: {str(cause).partition(chr(10))[0]}"
    for kind, sentences in _SENTENCES.items():
        if sentence := sentences.get(code) or sentences.get(code[:2]):
            return kind(f"{name}: {sentence} ({said})")
    return StoreError(f"{name}: {said}")


def has_lost_track(error: BaseException | None) -> bool:
    """Whether the driver lost track of its connection, which the pool must drop.

    That happens when a server ends a connection in the middle of a statement's answers.
    """
    return isinstance(error, asyncpg.InternalClientError)


def _explain_driver(error: Exception, name: str) -> StoreError:
    """Explain an error of the driver itself."""
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreBroken(f"{name}: its address is wrong: {error}")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return StoreNotWritable(f"{name}: {_NO_MATCHING_SERVER}")
    if has_lost_track(error):
        return StoreUnavailable(f"{name}: {_LOST} ({error})")
    if "closed" in str(error):
        return StoreUnavailable(f"{name}: {_LOST}")
    return StoreError(f"{name}: PostgreSQL says: {str(error).partition(chr(10))[0]}")


def _explain_connecting(error: OSError, name: str) -> StoreError:
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{name}: the database did not answer in time; {_AGAIN}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return StoreBroken(f"{name}: its certificate is not trusted: {error.verify_message}")
    return StoreUnavailable(
        f"{name}: cannot connect; check the address, and that the server runs ({error})"
    )
