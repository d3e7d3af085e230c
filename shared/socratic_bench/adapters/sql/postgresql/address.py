"""The address of a PostgreSQL database, and how it is told to people: without its password."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from socratic_bench.errors import InvalidSettings

_FORM = "postgresql://user:password@host:port/database"


@dataclass(frozen=True, slots=True)
class PostgreSQLAddress:
    """Where a database is, and how to get in."""

    url: str = field(repr=False)
    """As the driver takes it, password included: for the driver alone."""

    hosts: str
    """`host:port`, or several of them by commas."""

    database: str

    @property
    def each_host(self) -> Sequence[str]:
        """The same address for each of its hosts alone: for the driver, as `url` is."""
        parts = urlsplit(self.url)
        access, at, hosts = parts.netloc.rpartition("@")
        return [parts._replace(netloc=f"{access}{at}{host}").geturl() for host in hosts.split(",")]

    @property
    def name(self) -> str:
        """Which database, as people know it."""
        return f"postgresql://{self.hosts}/{self.database}"


def parse(url: str) -> PostgreSQLAddress:
    """What `url` says. Raises InvalidSettings for one that cannot be right, without quoting it.

    What follows a `?` is for the driver, such as `sslmode=verify-full`.
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
            _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        raise InvalidSettings(
            f"the host or port in the store's address cannot be right: give {_FORM}"
        ) from None
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in parts.path.removeprefix("/") or "@" in parts.path + parts.query:
        raise InvalidSettings(f"the store's address names no database: give {_FORM}")
    return PostgreSQLAddress(url=url, hosts=hosts, database=database)
