"""Queues and a table for one test of a function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.addresses import open_store
from socratic_bench.ports.broker import WorkQueue
from socratic_bench.ports.stores.store import Store
from tests.servers import aws_emulator, dynamodb, sqs


class Place(NamedTuple):
    """Queues and a table of this test alone."""

    broker_url: str
    store_url: str
    broker: SqsBroker
    store: Store

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a function that works here."""
        return {
            **aws_emulator.credentials(),
            "AWS_ENDPOINT_URL": aws_emulator.SERVER.address(),
            "SOCRATIC_BROKER_URL": self.broker_url,
            "SOCRATIC_STORE_URL": self.store_url,
        }


@asynccontextmanager
async def a_place(
    queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()
) -> AsyncIterator[Place]:
    """Make them, with these queues declared; all is gone afterwards."""
    async with sqs.namespace() as broker_url, dynamodb.new_table() as store_url:
        broker, store = SqsBroker(broker_url), open_store(store_url)
        await broker.declare(queues, broadcasts)
        await store.prepare()
        try:
            yield Place(broker_url, store_url, broker, store)
        finally:
            await broker.close()
            await store.close()
