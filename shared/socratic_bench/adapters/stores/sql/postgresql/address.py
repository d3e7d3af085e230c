"""The address of a PostgreSQL database, as an operator gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from socratic_bench.errors import InvalidSettings

_OF_OTHERS = frozenset(
    {"channel_binding", "connect_timeout", "connection_limit", "gssencmode", "keepalives"}
    | {"pgbouncer", "pool_timeout", "schema", "ssl", "uselibpqcompat"}
)
"""Parameters in the addresses that hosts of databases give for other drivers."""

_FORM = "postgresql://user:password@host:port/database"


@dataclass(frozen=True, slots=True)
class PostgreSQLAddress:
    """The hosts, the name and the credentials of a database."""

    url: str = field(repr=False)
    """The driver's form, with the password, for the driver alone."""

    hosts: str
    """`host:port`, or several of them, separated by commas."""

    database: str

    @property
    def each_host(self) -> Sequence[str]:
        """Return the driver's form of the address with each host alone."""
        parts = urlsplit(self.url)
        access, at, hosts = parts.netloc.rpartition("@")
        return [parts._replace(netloc=f"{access}{at}{host}").geturl() for host in hosts.split(",")]

    @property
    def name(self) -> str:
        """The database for people."""
        return f"postgresql://{self.hosts}/{self.database}"


def parse(url: str) -> PostgreSQLAddress:
    """Parse `url`. Raises InvalidSettings for a malformed one, without quoting it.

    The driver gets the part after a `?`, such as `sslmode=verify-full`.
    """
    if "@" in url.rpartition("@")[0] or "#" in url:
        raise InvalidSettings(
            f"the store's address does not have the form {_FORM}: "
            "in a user or password write @ as %40, # as %23, / as %2F and ? as %3F"
        )
    try:
        parts = urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2]
        if "," not in hosts:
            _ = parts.port  # raises ValueError for a port that is not a number
    except ValueError:
        raise InvalidSettings(
            f"the store's address has a wrong host or port: give {_FORM}"
        ) from None
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in parts.path.removeprefix("/") or "@" in parts.path + parts.query:
        raise InvalidSettings(f"the store's address names no database: give {_FORM}")
    if unknown := _OF_OTHERS & parse_qs(parts.query, keep_blank_values=True).keys():
        raise InvalidSettings(
            f"the store's address has the parameter {min(unknown)}, which the driver does not "
            "know: remove it, and keep sslmode"
        )
    return PostgreSQLAddress(url=url, hosts=hosts, database=database)
