"""The `--store` and `--broker` options, and opening what they name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.errors import InvalidSettings
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store

DEFAULT_STORE = "sqlite:///socratic-bench.db"

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """Add `--store URL` to a command."""
    return click.option(
        "--store",
        "store_url",
        metavar="URL",
        envvar="SOCRATIC_STORE_URL",
        default=DEFAULT_STORE,
        show_default=True,
        show_envvar=True,
        help="The store of the results.",
    )(command)


def database_file(store_url: str) -> Path | None:
    """The file behind a SQLite address; None for any other store."""
    prefix = "sqlite:///"
    return Path(store_url[len(prefix) :]) if store_url.startswith(prefix) else None


def shown_address(store_url: str) -> str:
    """Return a store's address in public form: without user, password and options."""
    if database_file(store_url) is not None:
        return store_url
    scheme, _, rest = store_url.partition("://")
    address, _, options = rest.partition("?")
    if "@" in options:  # or a password with a question mark: keep it either way
        return f"{scheme}://…"
    return f"{scheme}://{address.rpartition('@')[2]}"


@asynccontextmanager
async def prepared_store(store_url: str, *, must_exist: bool = False) -> AsyncIterator[Store]:
    """Open the store at an address, bring its schema up to date, and close it at the end.

    With `must_exist`, raises InvalidSettings for a missing database file.
    """
    if must_exist:
        _require_file(store_url)
    store = open_store(store_url)
    try:
        await store.prepare()
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def readable_store(store_url: str) -> AsyncIterator[Store]:
    """Open the store at an address for a command that only reads: its schema stays as it is.

    Raises InvalidSettings for a missing database file, StoreBroken for a schema that this version
    cannot read.
    """
    _require_file(store_url)
    store = open_store(store_url)
    try:
        await store.check_readable()
        yield store
    finally:
        await store.close()


def _require_file(store_url: str) -> None:
    file = database_file(store_url)
    if file is not None and not file.exists():
        raise InvalidSettings(
            f"there are no results at {file}: run a benchmark first, or name its store with --store"
        )


VARIABLE = "SOCRATIC_BROKER_URL"
_ADDRESS = "such as amqp://user:password@host:5672/ or sqs://region/namespace"


def broker_option(command: F) -> F:
    """Add `--broker URL` to a command; None if neither the option nor the variable is set."""
    return click.option(
        "--broker",
        "broker_url",
        metavar="URL",
        envvar=VARIABLE,
        show_envvar=True,
        help="The broker of the services.",
    )(command)


@asynccontextmanager
async def opened_broker(broker_url: str | None) -> AsyncIterator[Broker]:
    """Open the broker at an address, and close it at the end. It connects at its first use.

    Raises InvalidSettings without a broker, or for one that services cannot share.
    """
    if not broker_url:
        raise InvalidSettings(
            f"no broker is named: give the one that your services use, {_ADDRESS}, with --broker "
            f"or {VARIABLE}"
        )
    if broker_url.startswith("memory:"):
        raise InvalidSettings(
            "memory:// is a broker within one process, which no service can reach: "
            f"name the one that your services use, {_ADDRESS}, or do it all in one process with "
            "`socratic-bench run`"
        )
    broker = open_broker(broker_url)
    try:
        yield broker
    finally:
        await broker.close()
