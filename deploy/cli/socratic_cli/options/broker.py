"""The `--broker` option, and opening its broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from socratic_bench.addresses import open_broker
from socratic_bench.errors import InvalidSettings
from socratic_bench.ports.broker import Broker

VARIABLE = "SOCRATIC_BROKER_URL"
_ADDRESS = "such as amqp://user:password@host:5672/ or sqs://region/namespace"

F = TypeVar("F", bound=Callable[..., Any])


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
