"""A service's broker and store: open, reach and close them. The errors that end a process."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, TypeVar

import structlog
from pydantic import SecretStr

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.concurrency.deadlines import within
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.errors import (
    BrokerRefused,
    BrokerUnavailable,
    InvalidSettings,
    SocraticBenchError,
    StoreUnavailable,
)
from socratic_bench.ports.broker import Broker, WorkQueue
from socratic_bench.ports.stores.store import Store


class CannotStart(SocraticBenchError):
    """The service did not reach its store or broker in time."""


def first_cause(error: BaseException) -> BaseException:
    """Return the error to show: of a group, its first SocraticBenchError, or else its first."""
    while isinstance(error, BaseExceptionGroup):
        error = (error.subgroup(SocraticBenchError) or error).exceptions[0]
    return error


@contextmanager
def naming(variable: str) -> Iterator[None]:
    """Put the name of the wrong environment variable into InvalidSettings."""
    try:
        yield
    except InvalidSettings as error:
        raise InvalidSettings(f"{variable}: {error}") from None


def new_owner(kind: str) -> str:
    """Return a unique name of `kind`, host, process and random digits."""
    return f"{kind}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


log = structlog.get_logger(__name__)

CLOSE_DEADLINE: Final = 10.0
"""Seconds that closing the broker or the store may take."""

_BETWEEN_TRIES: Final = RetryPolicy(first_delay=0.5, longest_delay=4.0)

Opened = TypeVar("Opened", Broker, Store)


@asynccontextmanager
async def opened_broker(address: SecretStr) -> AsyncIterator[Broker]:
    """Yield the broker at `address`, and close it in the end. Raises InvalidSettings."""
    with naming("SOCRATIC_BROKER_URL"):
        broker = open_broker(address.get_secret_value())
    async with _closing(broker, "broker"):
        yield broker


@asynccontextmanager
async def opened_store(
    address: SecretStr, open_: Callable[[str], Store] = open_store
) -> AsyncIterator[Store]:
    """Yield the store at `address`, and close it in the end. Raises InvalidSettings.

    `open_` may be the adapter's own; else the address selects one, which is imported only then.
    """
    with naming("SOCRATIC_STORE_URL"):
        store = open_(address.get_secret_value())
    async with _closing(store, "store"):
        yield store


async def reach_all(
    broker: Broker | None,
    store: Store | None,
    seconds: float,
    *,
    queues: Iterable[WorkQueue] = WORK_QUEUES,
    broadcasts: Iterable[str] = BROADCASTS,
) -> None:
    """Reach broker and store, if given; declare the queues, bring the schema up to date.

    Raises an ExceptionGroup of the errors of `reach`.
    """
    async with asyncio.TaskGroup() as reaching:
        if broker is not None:
            declare = partial(broker.declare, queues, broadcasts)
            reaching.create_task(reach("broker", declare, seconds))
        if store is not None:
            reaching.create_task(reach("store", store.prepare, seconds))


async def reach(name: str, ask: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Try `ask` until it succeeds.

    Raises CannotStart after `seconds`, and at once an error that another try cannot mend.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    attempt, reason = 0, "it does not answer"
    while True:
        attempt += 1
        try:
            await within(end - loop.time(), ask())
        except BrokerRefused:
            raise
        except (StoreUnavailable, BrokerUnavailable, TimeoutError) as error:
            reason = str(error) or reason
        else:
            return
        delay = _BETWEEN_TRIES.delay(attempt)
        if loop.time() + delay >= end:
            raise CannotStart(f"the {name} did not answer within {seconds:g} s: {reason}")
        log.warning("waiting", missing=name, reason=reason, attempt=attempt)
        await asyncio.sleep(delay)


@asynccontextmanager
async def _closing(opened: Opened, name: str) -> AsyncIterator[None]:
    try:
        yield
    finally:
        try:
            await within(CLOSE_DEADLINE, opened.close())
        except (SocraticBenchError, TimeoutError) as error:
            log.warning("not closed", what=name, reason=str(error) or "no answer in time")
