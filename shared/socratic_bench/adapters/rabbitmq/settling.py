"""How the server learns that a parcel is done, or has to be delivered again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

from socratic_bench.adapters.rabbitmq.faults import is_fault
from socratic_bench.adapters.rabbitmq.holdings import Holdings, Parcel
from socratic_bench.errors import BrokerError, DeliveryLost

SETTLE_SECONDS: Final = 15.0
"""How long it may take to send one word to the server."""


async def finish(held: Holdings, parcel: Parcel) -> None:
    """Settle a parcel that is not held any more. Raises DeliveryLost where the channel is lost."""
    if parcel.given_up:
        return
    try:
        # The driver waits for ever for room in the queue of a connection that just broke.
        async with asyncio.timeout(SETTLE_SECONDS):
            if parcel.to_return:
                await parcel.incoming.nack(requeue=True)
            else:
                await parcel.incoming.ack()
    except Exception as error:
        if not is_fault(error):
            raise
        raise held.lost(parcel.incoming.message_id or "") from error


async def move(held: Holdings, parcel: Parcel, publishing: Awaitable[None]) -> None:
    """Publish copies elsewhere, then let go of a parcel nothing was handed out of.

    Where that fails it goes back to its queue.
    """
    try:
        await publishing
    except BrokerError:
        parcel.to_return = True
    if held.let_go(parcel):
        with suppress(DeliveryLost):
            await finish(held, parcel)
