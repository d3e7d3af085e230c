"""Tells the server that a batch is done, or has to be redelivered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

from aio_pika.abc import AbstractIncomingMessage

from socratic_bench.adapters.rabbitmq.connecting.errors import is_connection_error
from socratic_bench.consuming.unacked import Batch, UnackedMessages
from socratic_bench.errors import BrokerError, DeliveryLost

SETTLE_SECONDS: Final = 15.0
"""Seconds that sending one acknowledgement may take."""


async def acknowledge(incoming: AbstractIncomingMessage, *, to_return: bool = False) -> None:
    """Acknowledge a message, or return it to its queue.

    Raises TimeoutError and other errors that `is_connection_error` knows: the driver waits for ever
    for room in the write queue of a connection that just broke.
    """
    async with asyncio.timeout(SETTLE_SECONDS):
        if to_return:
            await incoming.nack(requeue=True)
        else:
            await incoming.ack()


async def finish(
    unacked: UnackedMessages[AbstractIncomingMessage], batch: Batch[AbstractIncomingMessage]
) -> None:
    """Settle a released batch. Raises DeliveryLost if the channel is lost."""
    if batch.given_up:
        return
    try:
        await acknowledge(batch.incoming, to_return=batch.to_return)
    except Exception as error:
        if not is_connection_error(error):
            raise
        raise unacked.lost(batch.incoming.message_id or "") from error


async def move(
    unacked: UnackedMessages[AbstractIncomingMessage],
    batch: Batch[AbstractIncomingMessage],
    publishing: Awaitable[None],
) -> None:
    """Publish copies elsewhere, then settle the batch; if the publish fails, return the batch."""
    try:
        await _publish_or_return(batch, publishing)
        if unacked.release(batch):
            with suppress(DeliveryLost):
                await finish(unacked, batch)
    finally:
        # The driver cancels this when the channel is lost.
        unacked.moved()


async def _publish_or_return(
    batch: Batch[AbstractIncomingMessage], publishing: Awaitable[None]
) -> None:
    try:
        await publishing
    except BrokerError:
        batch.to_return = True
