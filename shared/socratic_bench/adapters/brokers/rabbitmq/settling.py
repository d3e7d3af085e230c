"""Tells the server that batches are done, or have to be redelivered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Final

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq.connection import is_connection_error
from socratic_bench.adapters.brokers.unacked import Batch, UnackedMessages
from socratic_bench.errors import BrokerError, DeliveryLost

SETTLE_SECONDS: Final = 15.0
"""Seconds that sending one acknowledgement may take."""


async def acknowledge(
    incoming: AbstractIncomingMessage, *, to_return: bool = False, earlier_too: bool = False
) -> None:
    """Acknowledge a message, with all earlier ones of its channel or alone; or return it to its
    queue.

    Raises TimeoutError and other errors that `is_connection_error` knows: the driver waits for ever
    for room in the write queue of a connection that just broke.
    """
    async with asyncio.timeout(SETTLE_SECONDS):
        if to_return:
            await incoming.nack(requeue=True)
        else:
            await incoming.ack(multiple=earlier_too)


async def give_back_all(channel: AbstractChannel) -> None:
    """Return all messages in hand of a channel to their queue, in order."""
    await (await channel.get_underlay_channel()).basic_nack(0, multiple=True, requeue=True)


class Settling:
    """Tells the server of the batches of one channel: of many with one frame where it can."""

    def __init__(self, unacked: UnackedMessages[AbstractIncomingMessage]) -> None:
        self._unacked = unacked
        self._untold: dict[Batch[AbstractIncomingMessage], None] = {}
        """The batches of which the server has not been told, in the order of their arrival."""

        self._last_tag = 0
        self._knows_all = True
        """Whether every delivery of the channel came here. The driver drops those of a consumer
        that is being cancelled: they are unacknowledged, and have to stay so."""

    def arrived(self, batch: Batch[AbstractIncomingMessage]) -> None:
        """Note that a batch arrived."""
        self.saw(batch.incoming)
        self._untold[batch] = None

    def saw(self, incoming: AbstractIncomingMessage) -> None:
        """Note a delivery of the channel: the server numbers all, without a gap."""
        tag = incoming.delivery_tag or 0
        self._knows_all = self._knows_all and tag == self._last_tag + 1
        self._last_tag = tag

    def forget_all(self) -> None:
        """Forget the batches of a channel that is lost."""
        self._untold.clear()
        self._last_tag, self._knows_all = 0, True

    async def acknowledge(self, batch: Batch[AbstractIncomingMessage]) -> None:
        """Acknowledge a batch alone. Raises what `acknowledge` does."""
        await acknowledge(batch.incoming)
        self._untold.pop(batch, None)

    async def finish(self, released: Sequence[Batch[AbstractIncomingMessage]]) -> None:
        """Settle released batches. Raises DeliveryLost if the channel is lost."""
        together = self._all_before(released)
        if together:
            with self._loss_of(together[-1]):
                await acknowledge(together[-1].incoming, earlier_too=True)
        alone = set(released).difference(together)
        for batch in together:
            self._untold.pop(batch, None)
        for batch in released:
            if batch in alone and not batch.given_up:
                with self._loss_of(batch):
                    await acknowledge(batch.incoming, to_return=batch.to_return)
                self._untold.pop(batch, None)

    async def move(
        self, batch: Batch[AbstractIncomingMessage], publishing: Awaitable[None]
    ) -> None:
        """Publish copies elsewhere, then settle the batch; if the publish fails, return it."""
        try:
            await _publish_or_return(batch, publishing)
            if self._unacked.release(batch):
                with suppress(DeliveryLost):
                    await self.finish([batch])
        finally:
            # The driver cancels this when the channel is lost.
            self._unacked.moved()

    def _all_before(
        self, released: Iterable[Batch[AbstractIncomingMessage]]
    ) -> list[Batch[AbstractIncomingMessage]]:
        """Return those to acknowledge before which the channel delivered no other untold batch."""
        if not self._knows_all:
            return []
        handled = {batch for batch in released if not (batch.given_up or batch.to_return)}
        return list(takewhile(handled.__contains__, self._untold))

    @contextmanager
    def _loss_of(self, batch: Batch[AbstractIncomingMessage]) -> Iterator[None]:
        """Raise DeliveryLost for an error of the connection."""
        try:
            yield
        except Exception as error:
            if not is_connection_error(error):
                raise
            raise self._unacked.lost(batch.incoming.message_id or "") from error


async def _publish_or_return(
    batch: Batch[AbstractIncomingMessage], publishing: Awaitable[None]
) -> None:
    try:
        await publishing
    except BrokerError:
        batch.to_return = True
