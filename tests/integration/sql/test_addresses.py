"""A wrong store address is refused with the right form, and never with its password."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from socratic_bench.adapters.stores.sql.database import backend_for
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.addresses import open_broker, open_store
from socratic_bench.errors import InvalidSettings, StoreError

PASSWORD = "k33p-this"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "benchmark.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://x",
        f"mysql://user:{PASSWORD}@host/db",
        f"postgresql:/user:{PASSWORD}@host/db",
        f"postgresql:user:{PASSWORD}@host/db",
    ],
)
def test_an_address_that_is_none_is_refused_with_what_would_be_right(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"sqlite:///path/to/file\.db") as refused:
        SqlStore.from_url(url)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql:/user:{PASSWORD}@host/db",
        f"postgresql//user:{PASSWORD}@host/db",
        f"amqp:user:{PASSWORD}@host/",
        f"{PASSWORD}:user@host/db",
        f"host=db password={PASSWORD}",
        f"'mysql://user:{PASSWORD}@host/db'",
    ],
)
@pytest.mark.parametrize("open_", [open_store, open_broker])
def test_an_address_of_no_known_kind_is_refused_without_the_password(
    address: str, open_: Callable[[str], object]
) -> None:
    with pytest.raises(InvalidSettings) as refused:
        open_(address)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"postgresql://user:{PASSWORD}@host", "names no database"),
        (f"postgresql://user:{PASSWORD}@host/", "names no database"),
        (f"postgresql://user:{PASSWORD}@host/a/b", "names no database"),
        (f"postgresql://user:{PASSWORD}@host:port/db", "host or port"),
        (f"postgresql://user:{PASSWORD}@host:99999/db", "host or port"),
        (f"postgresql://user:{PASSWORD}@[::1/db", "host or port"),
        (f"postgresql://user:{PASSWORD}@2@host/db", "write @ as %40"),
        (f"postgresql://user:{PASSWORD}#2@host/db", "write @ as %40"),
        (f"postgresql://user:{PASSWORD}/2@host/db", "host or port"),
        (f"postgresql://user:12/{PASSWORD}@host/db", "names no database"),
        (f"postgresql://user:12/{PASSWORD}@host", "names no database"),
        (f"postgresql://user:12?{PASSWORD}@host/db", "names no database"),
        (
            f"postgresql://user:{PASSWORD}@host/db?sslmode=require&channel_binding=require",
            "channel_binding, which the driver does not know: remove it",
        ),
        (f"postgresql://user:{PASSWORD}@host/db?pgbouncer=true", "the parameter pgbouncer"),
    ],
)
def test_a_mistake_in_an_address_is_told_without_the_password(url: str, problem: str) -> None:
    with pytest.raises(InvalidSettings, match=problem) as refused:
        SqlStore.from_url(url)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"postgresql://user:{PASSWORD}@db.example:5433/socratic", "db.example:5433/socratic"),
        (f"postgresql://user:{PASSWORD}@db/a%20b?sslmode=require", "db/a b"),
        (f"postgresql://db/socratic?user=u&password={PASSWORD}", "db/socratic"),
        (f"postgresql://user:{PASSWORD}@one:1,two:2/socratic", "one:1,two:2/socratic"),
        ("postgresql:///socratic?host=/run/postgresql", "/socratic"),
    ],
)
def test_a_database_is_named_without_user_and_password(url: str, name: str) -> None:
    backend = backend_for(url)
    assert backend.name == f"postgresql://{name}"
    assert PASSWORD not in repr(backend)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql+asyncpg", "postgresql+psycopg2"])
async def test_an_address_may_begin_as_hosts_and_other_programs_write_it(scheme: str) -> None:
    store = open_store(f"{scheme}://user:{PASSWORD}@127.0.0.1:1/socratic")
    with pytest.raises(StoreError, match=r"postgresql://127\.0\.0\.1:1/socratic: cannot connect"):
        await store.prepare()
    await store.close()


def test_without_the_driver_sqlite_works_and_postgresql_says_what_to_install() -> None:
    script = """
import sys
sys.modules["asyncpg"] = None  # as if it were not installed
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import MissingExtra
SqlStore.from_url("sqlite:///benchmark.db")
try:
    SqlStore.from_url("postgresql://host/db")
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'socratic-ai-bench[postgresql]'" in done.stdout
