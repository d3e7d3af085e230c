"""How the server learns that a parcel is done, or has to be delivered again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

from aio_pika.abc import AbstractIncomingMessage

from socratic_bench.adapters.rabbitmq.faults import is_fault
from socratic_bench.adapters.rabbitmq.holdings import Holdings, Parcel
from socratic_bench.errors import BrokerError, DeliveryLost

SETTLE_SECONDS: Final = 15.0
"""How long it may take to send one word to the server."""


async def acknowledge(incoming: AbstractIncomingMessage, *, to_return: bool = False) -> None:
    """Tell the server that a message is done, or that it has to go back to its queue.

    Raises TimeoutError, and what else `is_fault` knows: the driver waits for ever for room in the
    queue of a connection that just broke.
    """
    async with asyncio.timeout(SETTLE_SECONDS):
        if to_return:
            await incoming.nack(requeue=True)
        else:
            await incoming.ack()


async def finish(held: Holdings, parcel: Parcel) -> None:
    """Settle a parcel that is not held any more. Raises DeliveryLost where the channel is lost."""
    if parcel.given_up:
        return
    try:
        await acknowledge(parcel.incoming, to_return=parcel.to_return)
    except Exception as error:
        if not is_fault(error):
            raise
        raise held.lost(parcel.incoming.message_id or "") from error


async def move(held: Holdings, parcel: Parcel, publishing: Awaitable[None]) -> None:
    """Publish copies elsewhere, then let go of a parcel that was kept for that.

    Where that fails it goes back to its queue.
    """
    try:
        await _publish_or_return(parcel, publishing)
        if held.let_go(parcel):
            with suppress(DeliveryLost):
                await finish(held, parcel)
    finally:
        # The driver cancels this when the channel is lost.
        held.moved()


async def _publish_or_return(parcel: Parcel, publishing: Awaitable[None]) -> None:
    try:
        await publishing
    except BrokerError:
        parcel.to_return = True
