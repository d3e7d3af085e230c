"""One address selects each adapter; its module is imported only then."""

from __future__ import annotations

import re
from typing import Final

from socratic_bench.errors import InvalidSettings
from socratic_bench.invalid_values import control_character
from socratic_bench.plugins import require_package
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def _scheme_of(address: str) -> str:
    """Return the scheme of an address for an error. The rest may hold a password."""
    found = _SCHEME.match(address)
    return f"{found[1]}://…" if found else "an address without a scheme"


def _check_characters(what: str, address: str) -> None:
    """Raise InvalidSettings for control characters, and for white space at the ends."""
    problem = control_character(address)
    if problem is None and address != address.strip():
        problem = "has a space at one of its ends: remove it"
    if problem is not None:
        raise InvalidSettings(f"the {what}'s address {problem}")


def open_store(address: str) -> Store:
    """The store at `address`, not yet prepared.

    `sqlite:///path` is a file, relative to the working folder; `sqlite:////path` an absolute one;
    `postgresql://user:password@host:port/database` a database on a server, also as `postgres://`
    or with a driver's name, as hosts and other programs write it;
    `dynamodb://table` a table on AWS.
    Raises InvalidSettings for an address no adapter takes, MissingExtra without the driver.
    """
    _check_characters("store", address)
    scheme, separator, rest = address.partition("://")
    if separator and (scheme == "postgres" or scheme.startswith("postgresql+")):
        address = f"postgresql://{rest}"
    scheme = address.partition(":")[0]
    if scheme in {"sqlite", "postgresql"}:
        from socratic_bench.adapters.stores.sql.store import SqlStore  # noqa: PLC0415 - only when asked for

        return SqlStore.from_url(address)
    if scheme == "dynamodb":
        require_package(
            "aiobotocore", needed_by="a store in DynamoDB", extra="socratic-ai-bench[aws]"
        )
        from socratic_bench.adapters.stores.dynamodb.store import (  # noqa: PLC0415 - only when asked for
            DynamoDBStore,
        )

        return DynamoDBStore.from_url(address)
    raise InvalidSettings(
        f"no store at {_scheme_of(address)}: the address must begin with sqlite:///, "
        "postgresql:// or dynamodb://"
    )


def open_broker(address: str) -> Broker:
    """The broker at `address`, which it connects to when it is first used.

    `amqp://user:password@host:port/virtual-host`, or `amqps://` for TLS, is a RabbitMQ server;
    `sqs://region/namespace` is Amazon SQS.
    Raises InvalidSettings for an address no adapter takes, MissingExtra without the client.
    """
    _check_characters("broker", address)
    scheme = address.partition(":")[0]
    if scheme in {"amqp", "amqps"}:
        require_package(
            "aio_pika", needed_by="a RabbitMQ server", extra="socratic-ai-bench[rabbitmq]"
        )
        from socratic_bench.adapters.brokers.rabbitmq.broker import (  # noqa: PLC0415 - only when asked for
            RabbitMQBroker,
        )

        return RabbitMQBroker(address)
    if scheme == "sqs":
        require_package("aiobotocore", needed_by="a broker on SQS", extra="socratic-ai-bench[aws]")
        from socratic_bench.adapters.brokers.sqs.broker import (  # noqa: PLC0415 - only when asked for
            SqsBroker,
        )

        return SqsBroker(address)
    raise InvalidSettings(
        f"no broker at {_scheme_of(address)}: the address must begin with amqp://, amqps:// or "
        "sqs://"
    )
